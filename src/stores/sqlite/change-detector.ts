/** Detects whether cached values still match the database. */
import type { Statement } from 'better-sqlite3'
import type { ChangeSource } from '../sql/change-source.ts'
import type { Sqlite } from './open.ts'

/** Maximum age of an unseen change by another process: under a second with the request's own time. */
const POLL_MS = 500
/** How long cached values are served while the database cannot be read. */
const STALE_MS = 300_000

/** `data_version` counts changes of other processes only; caches learn of their own process's changes separately. */
export class ChangeDetector implements ChangeSource {
  readonly #dataVersion: Statement<[], number>
  readonly #clock: () => number
  #version: number | undefined
  #polledAt = Number.NEGATIVE_INFINITY
  #seenAt = Number.NEGATIVE_INFINITY

  /** `clock`: monotonic, in milliseconds. */
  constructor(db: Sqlite, clock: () => number = () => performance.now()) {
    this.#dataVersion = db.prepare<[], number>('PRAGMA data_version').pluck()
    this.#clock = clock
  }

  get lost(): boolean {
    return this.#clock() - this.#seenAt > STALE_MS
  }

  /**
   * Checks the database at most twice a second. Does not report a failure: cached values stay valid for a while, and
   * reading uncached ones fails by itself.
   */
  poll(): 'same' | 'changed' | 'lost' {
    const now = this.#clock()
    if (now - this.#polledAt < POLL_MS) return 'same'
    this.#polledAt = now
    try {
      const version = this.#dataVersion.get()
      const same = version === this.#version
      this.#version = version
      this.#seenAt = now
      return same ? 'same' : 'changed'
    } catch {
      return this.lost ? 'lost' : 'same'
    }
  }
}
