/**
 * The write-ahead log on its way to the disk. SQLite would wait for it within the commit, and the event loop with it;
 * here a thread waits, once for all transactions that have gathered meanwhile.
 */
import { closeSync, fdatasync, openSync } from 'node:fs'

export interface Disk {
  /** Resolves when all that was committed before would outlive a power cut; rejects when that is not known. */
  sync(): Promise<void>
  close(): void
}

export class LogFile implements Disk {
  readonly #path: string
  #file: number | undefined

  /** `path` is the database's. Its log is there from the first commit to the last connection's end. */
  constructor(path: string) {
    this.#path = `${path}-wal`
  }

  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#file ??= openSync(this.#path, 'r')
      fdatasync(this.#file, error => (error ? reject(error) : resolve()))
    })
  }

  /** Closing frees no lock of SQLite's: those are on other files. */
  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}
