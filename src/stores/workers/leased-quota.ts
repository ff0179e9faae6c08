/** A worker's borrowed units of one key. */
import type { Quota } from '../../core/ports.ts'
import { bucketMs, untilLeft } from '../memory/window.ts'
import type { Lease, LeaseClient, Unused } from './lease.ts'

/** Share of a bucket's units with which the next bucket begins. */
const CARRIED_SHARE = 1 / 8
/** Requests per bucket for exactly the needed units: rare keys are counted one by one. */
const SINGLE_UNIT_REQUESTS = 4
const MAX_EXTRA_UNITS = 1024

interface Waiter {
  readonly limit: number
  resolve(quota: Quota): void
  reject(reason: unknown): void
}

/** Spends leased units without a call to the lease server, and requests more when they are used up. */
export class LeasedQuota {
  readonly key: string
  readonly windowMs: number
  readonly #width: number
  readonly #leases: LeaseClient
  readonly #now: () => number
  /** In order of arrival. */
  readonly #waiting: Waiter[] = []
  #limit = 0
  #lease: Lease = { units: 0, bucket: -1, free: 0, leavesAt: 0 }
  #units = 0
  /** The last lease was smaller than the need. */
  #refused = false
  #requests = { bucket: -1, times: 0, units: 0, before: 0 }

  constructor(key: string, windowMs: number, leases: LeaseClient, now: () => number) {
    this.key = key
    this.windowMs = windowMs
    this.#width = bucketMs(windowMs)
    this.#leases = leases
    this.#now = now
  }

  take(limit: number): Quota | Promise<Quota> {
    switch (this.#known(limit)) {
      case 'free':
        return this.#admit()
      case 'refused':
        return this.#refuse()
      default:
        return new Promise((resolve, reject) => {
          if (this.#waiting.push({ limit, resolve, reject }) === 1) void this.#renew()
        })
    }
  }

  giveBack(unused: Unused): void {
    this.#refused = false
    this.#leases.giveBack(this.key, this.windowMs, unused)
  }

  async peek(limit: number): Promise<Quota> {
    const known = this.#known(limit)
    if (known === 'refused') return this.#refuse()
    if (known === 'free') {
      return { allowed: true, remaining: this.#lease.free + this.#units, resetMs: this.#resetMs() }
    }
    const { key, windowMs } = this
    const { free, leavesAt } = await this.#leases.peek({ key, limit, windowMs })
    return { allowed: free > 0, remaining: free, resetMs: untilLeft(leavesAt, this.#now(), windowMs) }
  }

  /** Answers the next request from the last lease; undefined when the lease server must decide. */
  #known(limit: number): 'free' | 'refused' | undefined {
    if (this.#waiting.length > 0 || limit !== this.#limit) return undefined
    if (this.#units > 0 && this.#bucket() === this.#lease.bucket) return 'free'
    return this.#refused && this.#now() < this.#lease.leavesAt ? 'refused' : undefined
  }

  /** Unused units. */
  get left(): number {
    return this.#units
  }

  /** Removes the unused units, for the caller to return. With `stale`, only those that can no longer be used. */
  drop({ stale = false } = {}): Unused | undefined {
    if (this.#units === 0 || (stale && this.#bucket() === this.#lease.bucket)) return undefined
    const unused = { bucket: this.#lease.bucket, units: this.#units }
    this.#units = 0
    return unused
  }

  async #renew(): Promise<void> {
    const waiting = this.#waiting
    try {
      while (waiting.length > 0) {
        const { limit } = waiting[0]!
        const other = waiting.findIndex(waiter => waiter.limit !== limit)
        const need = other < 0 ? waiting.length : other
        const { key, windowMs } = this
        const lease = await this.#leases.take({ key, windowMs, limit, need, more: this.#more(), unused: this.drop() })
        this.#limit = limit
        this.#lease = lease
        this.#units = lease.units
        this.#refused = lease.units < need
        for (const { resolve } of waiting.splice(0, need)) resolve(this.#units > 0 ? this.#admit() : this.#refuse())
        while (this.#units > 0 && waiting[0]?.limit === limit && this.#bucket() === lease.bucket) {
          waiting.shift()!.resolve(this.#admit())
        }
      }
    } catch (thrown) {
      for (const { reject } of waiting.splice(0)) reject(thrown)
    }
  }

  #admit(): Quota {
    this.#units--
    this.#requests.units++
    const { free, bucket } = this.#lease
    return { allowed: true, remaining: free + this.#units, resetMs: this.#resetMs(), bucket }
  }

  #refuse(): Quota {
    return { allowed: false, remaining: this.#lease.free, resetMs: this.#resetMs() }
  }

  #resetMs(): number {
    return untilLeft(this.#lease.leavesAt, this.#now(), this.windowMs)
  }

  #bucket(): number {
    return Math.floor(this.#now() / this.#width)
  }

  /** How many units to request beyond the need: as the last bucket used, doubled each time that was too little. */
  #more(): number {
    const bucket = this.#bucket()
    if (bucket !== this.#requests.bucket) {
      const before = bucket === this.#requests.bucket + 1 ? this.#requests.units : 0
      this.#requests = { bucket, times: 0, units: 0, before }
    }
    const times = ++this.#requests.times
    const doubled = times > SINGLE_UNIT_REQUESTS ? 2 ** (times - SINGLE_UNIT_REQUESTS) : 0
    return Math.min(MAX_EXTRA_UNITS, Math.max(doubled, Math.floor(this.#requests.before * CARRIED_SHARE)))
  }
}
