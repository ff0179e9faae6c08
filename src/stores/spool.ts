/**
 * Rows that the database cannot take now, in files beside it: JSON lines in sequence, until they can be entered. Every
 * owner writes its own files; those of dead owners are taken over.
 */
import { existsSync } from 'node:fs'
import { appendFile, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { RequestRow } from '../core/ports.ts'
import type { Ends } from './rules/settlement.ts'

const MAX_SPOOL_BYTES = 64 * 1024 * 1024
/** Legacy names without the database's name: they belong to the database that finds them. */
const UNNAMED = /^spool-([a-z0-9]+)-\d+\.jsonl$/
const NUMBERED = /^([a-z0-9]+)-\d+\.jsonl$/

/** A row, with the hold that it ends unless its caller pays the provider itself. */
export type Spooled = RequestRow & { readonly ends?: Ends }

/** Enters rows of one file. Returns those that the database will never take; rejects when it takes none for now. */
export type Enter = (rows: readonly Spooled[]) => Promise<readonly Spooled[]>

/** The files of one instance. `append` adds a row, `drain` enters the rows of this instance and of dead ones. */
export class Spool {
  readonly #folder: string | undefined
  /** Prefix of the names of this database's files. */
  readonly #prefix: string
  readonly #owner: string
  /** Sizes of this owner's files, by path. */
  readonly #sizes = new Map<string, number>()
  /** Their sum, including pending appends. */
  #bytes = 0
  #file = 0
  /** Serializes appends. */
  #turn: Promise<unknown> = Promise.resolve()

  /** `database`: its path; without one nothing can be spooled. */
  constructor(database: string | undefined, owner: string) {
    this.#folder = database === undefined ? undefined : dirname(database)
    this.#prefix = `spool-${basename(database ?? '')}-`
    this.#owner = owner
  }

  get hasRoom(): boolean {
    return this.#folder !== undefined && this.#bytes < MAX_SPOOL_BYTES
  }

  /** Resolves when the operating system has the line; rejects when it cannot be written. */
  append(row: Spooled): Promise<void> {
    if (!this.hasRoom) {
      return Promise.reject(new Error('The spool is full: rows that the database cannot take cannot be kept.'))
    }
    const line = lineOf(row)
    this.#bytes += line.length
    const write = this.#turn.then(async () => {
      const path = this.#path()
      try {
        await appendFile(path, line, { mode: 0o600 })
      } catch (error) {
        this.#bytes -= line.length
        throw error
      }
      this.#sizes.set(path, (this.#sizes.get(path) ?? 0) + line.length)
    })
    this.#turn = write.catch(() => undefined)
    return write
  }

  /**
   * Enters the rows of this process and of dead ones: `enter` receives the rows of a file, which is removed once it
   * resolves; rows that it returns move to a file that is never entered. Rows entered before their file could be
   * removed come again. Files that cannot be read are left; when `enter` rejects, so are all that follow. Rejects then.
   */
  async drain(living: readonly string[], enter: Enter): Promise<void> {
    if (this.#folder === undefined) return
    await this.#rotate()
    const failures: unknown[] = []
    let isRefused = false
    const attempt: Enter = rows =>
      enter(rows).catch((error: unknown) => {
        isRefused = true
        throw error
      })
    // The first start of a node of PostgreSQL makes its folder later.
    for (const name of existsSync(this.#folder) ? await readdir(this.#folder) : []) {
      const owner = this.#ownerOf(name)
      if (owner === undefined || (owner !== this.#owner && living.includes(owner))) continue
      const path = join(this.#folder, name)
      if (path !== this.#path()) await this.#take(path, attempt).catch((error: unknown) => failures.push(error))
      if (isRefused) break
    }
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} files of rows cannot be entered.`)
    if (failures.length > 0) throw failures[0]
  }

  /** Begins another file after all pending appends. */
  #rotate(): Promise<unknown> {
    this.#turn = this.#turn.then(() => {
      if (this.#sizes.has(this.#path())) this.#file++
    })
    return this.#turn
  }

  async #take(path: string, enter: Enter): Promise<void> {
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      // Another process has taken it.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    const refused = await enter(parse(text))
    if (refused.length > 0) {
      const aside = join(this.#folder!, `${this.#prefix}refused.jsonl`)
      await appendFile(aside, Buffer.concat(refused.map(lineOf)), { mode: 0o600 })
    }
    await rm(path, { force: true })
    this.#bytes -= this.#sizes.get(path) ?? 0
    this.#sizes.delete(path)
  }

  #ownerOf(name: string): string | undefined {
    const rest = name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : ''
    return (NUMBERED.exec(rest) ?? UNNAMED.exec(name))?.[1]
  }

  #path(): string {
    return join(this.#folder!, `${this.#prefix}${this.#owner}-${this.#file}.jsonl`)
  }
}

/** The line break comes first, so that a line cut short by a full disk damages no other row. */
const lineOf = (row: Spooled): Buffer =>
  Buffer.from(`\n${JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))}`)

/** A truncated line belongs to a request that was never confirmed as stored. */
function parse(text: string): Spooled[] {
  return text.split('\n').flatMap(line => {
    try {
      return [JSON.parse(line, revive) as Spooled]
    } catch {
      return []
    }
  })
}

const AMOUNTS = new Set(['cost', 'storage'])
const revive = (key: string, value: unknown): unknown =>
  AMOUNTS.has(key) && typeof value === 'string' ? BigInt(value.slice(0, -1)) : value
