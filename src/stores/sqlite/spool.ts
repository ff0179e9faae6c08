/**
 * Rows that the database cannot take now, in files beside it: one after another, a line of JSON each, until they can
 * be entered. Every owner writes files of its own; those of dead ones are taken over.
 */
import { appendFile, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { RequestRow } from '../../core/ports.ts'
import type { Ends } from '../rules/settlement.ts'

const MAX_BYTES = 64 * 1024 * 1024
/** Without the database's name, as they were called before: they belong to whichever database finds them. */
const UNNAMED = /^spool-([a-z0-9]+)-\d+\.jsonl$/
const NUMBERED = /^([a-z0-9]+)-\d+\.jsonl$/

/** A row, with the hold that it ends unless its caller pays for itself. */
export type Spooled = RequestRow & { readonly ends?: Ends }

/** Enters rows of one file. Returns those that the database will never take; rejects when it takes none for now. */
export type Enter = (rows: readonly Spooled[]) => Promise<readonly Spooled[]>

export class Spool {
  readonly #folder: string | undefined
  /** What the names of all files of this database begin with. */
  readonly #prefix: string
  readonly #owner: string
  /** Of this owner's files, by path. */
  readonly #sizes = new Map<string, number>()
  /** Their sum, with what is on its way to them. */
  #bytes = 0
  #file = 0
  /** Appends one after another. */
  #turn: Promise<unknown> = Promise.resolve()

  /** `database` is its path; without one there is no room. */
  constructor(database: string | undefined, owner: string) {
    this.#folder = database === undefined ? undefined : dirname(database)
    this.#prefix = `spool-${basename(database ?? '')}-`
    this.#owner = owner
  }

  get hasRoom(): boolean {
    return this.#folder !== undefined && this.#bytes < MAX_BYTES
  }

  /** Resolves when the line is with the operating system; rejects when it cannot be written. */
  append(row: Spooled): Promise<void> {
    if (!this.hasRoom) {
      return Promise.reject(new Error('There is no room for rows that cannot be written to the database.'))
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
   * Enters what this process, and those that do not live, have left: `enter` gets the rows of a file, which is removed
   * once it has resolved; what it returns is kept in a file that nobody enters. Rows that were entered before a file
   * could be removed come again. Rejects when files are left, after it has tried them all.
   */
  async drain(living: readonly string[], enter: Enter): Promise<void> {
    if (this.#folder === undefined) return
    await this.#rotate()
    const failures: unknown[] = []
    for (const name of await readdir(this.#folder)) {
      const owner = this.#ownerOf(name)
      if (owner === undefined || (owner !== this.#owner && living.includes(owner))) continue
      const path = join(this.#folder, name)
      if (path !== this.#path()) await this.#take(path, enter).catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} files of rows cannot be entered.`)
    if (failures.length > 0) throw failures[0]
  }

  /** Begins another file behind all that is on its way to this one. */
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

/** The line break comes first, so that what a full disk has cut short takes no other row with it. */
const lineOf = (row: Spooled): Buffer =>
  Buffer.from(`\n${JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))}`)

/** A line that was cut short is of a request that nobody was told of as kept. */
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
