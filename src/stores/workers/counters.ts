/** Counters of one of several workers: exact for all workers together, and seldom slower than its own memory. */
import type { Counters, Quota, Reservation } from '../../core/ports.ts'
import { Keyed } from '../memory/keyed.ts'
import { type LeaseClient, systemClock, type Unused } from './lease.ts'
import { LeasedQuota } from './leased-quota.ts'

/** Interval for returning unused units. */
const SWEEP_MS = 500

/**
 * All workers together admit at most `limit` units in any span of `windowMs`; a requested unit counts from its lease.
 * No request is refused while another worker has unused units.
 */
export class LeasedCounters implements Counters {
  readonly #leases: LeaseClient
  readonly #now: () => number
  readonly #quotas = new Keyed((key, windowMs) => new LeasedQuota(key, windowMs, this.#leases, this.#now))
  readonly #sweep: NodeJS.Timeout

  /** `now`: the clock of the lease server. */
  constructor(leases: LeaseClient, now: () => number = systemClock) {
    this.#leases = leases
    this.#now = now
    this.#sweep = setInterval(() => this.giveBack(), SWEEP_MS)
    this.#sweep.unref()
  }

  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota> {
    return this.#quotas.of(key, windowMs).take(limit)
  }

  correct(key: string, windowMs: number, bucket: number, units: number): void {
    this.#quotas.of(key, windowMs).giveBack({ bucket, units: -units })
  }

  peek(key: string, limit: number, windowMs: number): Promise<Quota> {
    return this.#quotas.of(key, windowMs).peek(limit)
  }

  enter(key: string, limit: number): boolean | Promise<boolean> {
    return this.#leases.enter(key, limit)
  }

  leave(key: string): void {
    this.#leases.leave(key)
  }

  /** Asks for each reservation: it is as exact as its window, and rarer than a request. */
  async reserve(key: string, limit: number, windowMs: number, units: number): Promise<Reservation> {
    const { bucket, ...quota } = await this.#leases.reserve({ key, limit, windowMs, units })
    const correct = (actual: number): void => {
      if (quota.allowed && actual !== units) this.#leases.correct({ key, windowMs, bucket, units: actual - units })
    }
    return { ...quota, correct }
  }

  /** Gives up the unused units of a key. */
  recall(key: string, windowMs: number): Unused | undefined {
    return this.#quotas.of(key, windowMs).drop()
  }

  /** Returns borrowed units that can no longer be used. */
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
