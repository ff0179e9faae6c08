/**
 * Flushes the write-ahead log. SQLite would flush within the commit and block the event loop; here a thread flushes,
 * once for all transactions that have gathered.
 */
import { closeSync, fdatasync, openSync, statSync } from 'node:fs'
import { StoreError } from '../../core/ports.ts'

/** How long a non-durable transaction may go to a removed file. */
const CHECK_MS = 100

/** Hooks that the writer calls before a transaction and after its commit. */
export interface WalSync {
  /** Throws when the database file was removed or replaced, at most 100 ms late. */
  check(): void
  /** Resolves when all earlier commits survive a power cut; rejects when that is unknown. */
  sync(): Promise<void>
  close(): void
}

/** Identity of the file at a path; a removed file stays writable, and is lost with its last process. */
export function fileOf(path: string): string | undefined {
  const facts = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false })
  return facts && `${facts.dev}:${facts.ino}`
}

/** Throws unless `path` still names this file. */
export function checkFile(path: string, file: string | undefined): void {
  if (fileOf(path) !== file) throw new StoreError('The database file was removed or replaced. Restart the gateway.')
}

/** Opens the log for reading, and flushes it with `fdatasync` on a thread of libuv. */
export class LogFile implements WalSync {
  readonly #path: string
  /** Identity of the database file. */
  readonly #file: string | undefined
  #log: number | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  /** Result of the last check. */
  #fault: unknown

  /** `path` of the database. Its log exists from the first commit to the end of the last connection. */
  constructor(path: string) {
    this.#path = path
    this.#file = fileOf(path)
  }

  check(): void {
    const now = performance.now()
    if (now - this.#checkedAt >= CHECK_MS) {
      this.#checkedAt = now
      this.#fault = undefined
      try {
        this.#checkFile()
      } catch (error) {
        this.#fault = error
      }
    }
    if (this.#fault !== undefined) throw this.#fault
  }

  /** Also rejects when the commits are in a removed file. */
  sync(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.#log ??= openSync(`${this.#path}-wal`, 'r')
      fdatasync(this.#log, error => (error ? reject(error) : resolve()))
    }).then(this.#checkFile)
  }

  /** Closing releases no SQLite lock: those are on other files. */
  close(): void {
    if (this.#log !== undefined) closeSync(this.#log)
    this.#log = undefined
  }

  readonly #checkFile = (): void => checkFile(this.#path, this.#file)
}
