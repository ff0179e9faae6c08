/**
 * The write-ahead log on its way to the disk. SQLite would wait for it within the commit, and the event loop with it;
 * here a thread waits, once for all transactions that have gathered meanwhile.
 */
import { closeSync, fdatasync, openSync, statSync } from 'node:fs'
import { StoreError } from '../../core/ports.ts'

/** How long a transaction that need not last may go to a file that was removed. */
const CHECK_MS = 100

export interface WalSync {
  /** Throws when the database's file was removed or replaced, at the latest 100 ms after that. */
  check(): void
  /** Resolves when all that was committed before would outlive a power cut; rejects when that is not known. */
  sync(): Promise<void>
  close(): void
}

/** Which file a path names; one that is removed goes on to be written, and is lost with its last process. */
export function fileOf(path: string): string | undefined {
  const facts = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false })
  return facts && `${facts.dev}:${facts.ino}`
}

/** Throws unless `path` still names this file. */
export function checkFile(path: string, file: string | undefined): void {
  if (fileOf(path) !== file) throw new StoreError('The database file was removed or replaced. Restart the gateway.')
}

export class LogFile implements WalSync {
  readonly #path: string
  /** Which file the database is. */
  readonly #file: string | undefined
  #log: number | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  /** What the last check found wrong. */
  #fault: unknown

  /** `path` is the database's. Its log is there from the first commit to the last connection's end. */
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

  /** Rejects also when what was committed is in a file that was removed. */
  sync(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.#log ??= openSync(`${this.#path}-wal`, 'r')
      fdatasync(this.#log, error => (error ? reject(error) : resolve()))
    }).then(this.#checkFile)
  }

  /** Closing frees no lock of SQLite's: those are on other files. */
  close(): void {
    if (this.#log !== undefined) closeSync(this.#log)
    this.#log = undefined
  }

  readonly #checkFile = (): void => checkFile(this.#path, this.#file)
}
