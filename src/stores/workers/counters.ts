/** The counters of one worker of several: exact for all of them together, and seldom slower than its own memory. */
import { LRUCache } from 'lru-cache'
import type { Counters, Quota } from '../../core/ports.ts'
import { type LeaseClient, systemClock, type Unused } from './lease.ts'
import { LeasedQuota } from './leased-quota.ts'

const MAX_KEYS = 10_000
/** How often it is seen to what has been left over. */
const SWEEP_MS = 500

/**
 * In no span of `windowMs` are more than `limit` units admitted by all workers together, where a unit that had to be
 * asked for is admitted when it was lent. Nobody is refused while another worker has units left over.
 */
export class LeasedCounters implements Counters {
  readonly #lending: LeaseClient
  readonly #now: () => number
  readonly #slices = new LRUCache<string, LeasedQuota>({ max: MAX_KEYS })
  readonly #sweep: NodeJS.Timeout

  /** `now` is the clock of the lender. */
  constructor(lending: LeaseClient, now: () => number = systemClock) {
    this.#lending = lending
    this.#now = now
    this.#sweep = setInterval(() => this.giveBack(), SWEEP_MS)
    this.#sweep.unref()
  }

  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota> {
    const name = `${windowMs} ${key}`
    let slice = this.#slices.get(name)
    if (!slice) {
      slice = new LeasedQuota(key, windowMs, this.#lending, this.#now)
      this.#slices.set(name, slice)
    }
    return slice.take(limit)
  }

  enter(key: string, limit: number): boolean | Promise<boolean> {
    return this.#lending.enter(key, limit)
  }

  leave(key: string): void {
    this.#lending.leave(key)
  }

  /** Gives up what is left over of a key. */
  recall(key: string, windowMs: number): Unused | undefined {
    return this.#slices.peek(`${windowMs} ${key}`)?.drop()
  }

  /** Gives back what was borrowed and can not be used any more. */
  giveBack(): void {
    for (const slice of this.#slices.values()) {
      const unused = slice.left > 0 ? slice.drop({ stale: true }) : undefined
      if (unused) this.#lending.giveBack(slice.key, slice.windowMs, unused)
    }
  }

  close(): void {
    clearInterval(this.#sweep)
  }
}
