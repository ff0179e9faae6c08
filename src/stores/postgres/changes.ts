/** Changes that other nodes make: one row whose version rises with each of them. */
import type { ChangeSource } from '../sql/change-source.ts'
import type { Sql } from '../sql/sql.ts'

/** Maximum age of an unseen change by another node. */
const POLL_MS = 500
/** How long cached values are served while the database cannot be read. */
const STALE_MS = 300_000

/** Raises the version within a transaction, and makes such transactions run one at a time. */
export const markChange = (sql: Sql): Promise<unknown> =>
  sql.query('UPDATE changes SET version = version + 1 WHERE single')

/** Reads the version twice a second, for all caches of this node. */
export class ChangeWatch {
  readonly #sql: Sql
  readonly #timer: NodeJS.Timeout
  readonly #clock: () => number
  #version: bigint | undefined
  #seenAt = Number.NEGATIVE_INFINITY
  #reading = false

  /** `clock`: monotonic, in milliseconds. */
  constructor(sql: Sql, clock: () => number = () => performance.now()) {
    this.#sql = sql
    this.#clock = clock
    this.#timer = setInterval(() => void this.read(), POLL_MS)
    this.#timer.unref()
  }

  /** Never rejects: cached values stay valid for a while, and reading uncached ones fails by itself. */
  async read(): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      const [row] = await this.#sql.query<{ version: bigint }>('SELECT version FROM changes')
      this.#version = row?.version
      this.#seenAt = this.#clock()
    } catch {
      // Until it is lost: see `source`.
    }
    this.#reading = false
  }

  /** Returns the source of changes for one cache. */
  source(): ChangeSource {
    let known: bigint | undefined
    const isLost = () => this.#clock() - this.#seenAt > STALE_MS
    return {
      get lost() {
        return isLost()
      },
      poll: () => {
        if (isLost()) return 'lost'
        const isSame = known === this.#version
        known = this.#version
        return isSame ? 'same' : 'changed'
      },
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
