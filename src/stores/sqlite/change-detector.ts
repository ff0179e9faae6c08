/** Whether what is kept in memory is still what the database holds. */
import type { Statement } from 'better-sqlite3'
import type { Sqlite } from './open.ts'

/** How long a change of another process may go unseen: with a request's own time it is less than a second. */
const POLL_MS = 500
/** How long what is known is served while the database cannot be read. */
const STALE_MS = 300_000

/** `data_version` tells of the changes of others only; who keeps something must hear of its own process's by itself. */
export class ChangeDetector {
  readonly #dataVersion: Statement<[], number>
  readonly #clock: () => number
  #version: number | undefined
  #polledAt = Number.NEGATIVE_INFINITY
  #seenAt = Number.NEGATIVE_INFINITY

  /** `clock` is monotonic, in milliseconds. */
  constructor(db: Sqlite, clock: () => number = () => performance.now()) {
    this.#dataVersion = db.prepare<[], number>('PRAGMA data_version').pluck()
    this.#clock = clock
  }

  /** The database could not be read for so long that nothing known is good any more. */
  get lost(): boolean {
    return this.#clock() - this.#seenAt > STALE_MS
  }

  /**
   * Looks at the database, at most twice a second. A failing look is not reported here: what is known is good for a
   * while, and reading what is unknown fails by itself.
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
