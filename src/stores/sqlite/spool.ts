/**
 * Rows that the database cannot take now, in files beside it: one after another, a line of JSON each, until they can
 * be entered. Every owner writes files of its own; those of dead ones are taken over.
 */
import { appendFile, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RequestRow } from '../../core/ports.ts'

const MAX_BYTES = 64 * 1024 * 1024
const FILE = /^spool-([a-z0-9]+)-\d+\.jsonl$/

export class Spool {
  readonly #folder: string | undefined
  readonly #owner: string
  #bytes = 0
  #file = 0
  /** Appends one after another. */
  #turn: Promise<unknown> = Promise.resolve()

  /** Without a folder there is no room. */
  constructor(folder: string | undefined, owner: string) {
    this.#folder = folder
    this.#owner = owner
  }

  get hasRoom(): boolean {
    return this.#folder !== undefined && this.#bytes < MAX_BYTES
  }

  /** Resolves when the line is with the operating system; rejects when it cannot be written. */
  append(row: RequestRow): Promise<void> {
    const { hasRoom } = this
    const line = `${JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))}\n`
    const write = this.#turn.then(async () => {
      if (!hasRoom) throw new Error('There is no room for rows that cannot be written to the database.')
      await appendFile(this.#path(), line, { mode: 0o600 })
    })
    this.#bytes += line.length
    this.#turn = write.catch(() => undefined)
    return write
  }

  /**
   * Enters what this process, and those that do not live, have left: `enter` gets the rows of a file, which is removed
   * once it has resolved. Rows that were entered before a file could be removed come again.
   */
  async drain(living: readonly string[], enter: (rows: readonly RequestRow[]) => Promise<void>): Promise<void> {
    if (this.#folder === undefined) return
    if (this.#bytes > 0) {
      this.#file++
      this.#bytes = 0
      await this.#turn
    }
    for (const name of await readdir(this.#folder)) {
      const owner = FILE.exec(name)?.[1]
      if (owner === undefined || (owner !== this.#owner && living.includes(owner))) continue
      const path = join(this.#folder, name)
      if (path === this.#path()) continue
      await enter(parse(await readFile(path, 'utf8')))
      await rm(path, { force: true })
    }
  }

  #path(): string {
    return join(this.#folder!, `spool-${this.#owner}-${this.#file}.jsonl`)
  }
}

/** A last line that was cut short is of a request that nobody was told of as kept. */
function parse(text: string): RequestRow[] {
  return text.split('\n').flatMap(line => {
    try {
      return [JSON.parse(line, revive) as RequestRow]
    } catch {
      return []
    }
  })
}

const AMOUNTS = new Set(['cost', 'storage'])
const revive = (key: string, value: unknown): unknown =>
  AMOUNTS.has(key) && typeof value === 'string' ? BigInt(value.slice(0, -1)) : value
