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
  readonly #leases: LeaseClient
  readonly #now: () => number
  readonly #quotas = new LRUCache<string, LeasedQuota>({ max: MAX_KEYS })
  readonly #sweep: NodeJS.Timeout

  /** `now` is the clock of the lease server. */
  constructor(leases: LeaseClient, now: () => number = systemClock) {
    this.#leases = leases
    this.#now = now
    this.#sweep = setInterval(() => this.giveBack(), SWEEP_MS)
    this.#sweep.unref()
  }

  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota> {
    const name = `${windowMs} ${key}`
    let quota = this.#quotas.get(name)
    if (!quota) {
      quota = new LeasedQuota(key, windowMs, this.#leases, this.#now)
      this.#quotas.set(name, quota)
    }
    return quota.take(limit)
  }

  enter(key: string, limit: number): boolean | Promise<boolean> {
    return this.#leases.enter(key, limit)
  }

  leave(key: string): void {
    this.#leases.leave(key)
  }

  /** Gives up what is left over of a key. */
  recall(key: string, windowMs: number): Unused | undefined {
    return this.#quotas.peek(`${windowMs} ${key}`)?.drop()
  }

  /** Gives back what was borrowed and can not be used any more. */
  giveBack(): void {
    for (const quota of this.#quotas.values()) {
      const unused = quota.left > 0 ? quota.drop({ stale: true }) : undefined
      if (unused) this.#leases.giveBack(quota.key, quota.windowMs, unused)
    }
  }

  close(): void {
    clearInterval(this.#sweep)
  }
}
