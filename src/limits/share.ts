/** Shares a bounded amount of something (bytes, places, entries) among tenants, so that none can take all of it. */
import { MINUTE_MS } from '../lib/period.ts'
import { timerMs } from '../lib/timer.ts'

/** Share of the limit that a tenant may hold, from 0 to 1: alone, and while another is active. One unit always fits. */
export interface Shares {
  readonly alone: number
  readonly contended: number
}

/** Alone, a tenant leaves room for a newcomer. */
const DEFAULT_SHARES: Shares = { alone: 3 / 4, contended: 1 / 2 }
/**
 * Returns the share of a `limit` that a lone tenant may hold, for holds of up to an hour. A small limit is granted
 * whole. A large one keeps a part for newcomers.
 */
export const aloneOf = (limit: number): number => (limit >= MIN_SHARED_LIMIT ? 15 / 16 : 1)
const MIN_SHARED_LIMIT = 16
/** A tenant is active while it holds anything, and for this long after its last request. */
const ACTIVE_MS = 10 * MINUTE_MS

/** A tenant's last request. */
interface Arrival {
  readonly tenant: string
  at: number
}

/** Says that the one who waits has left. */
interface Leaving {
  listen(left: () => void): void
  ignore(left: () => void): void
}

/** How a tenant waits for a unit. */
interface Waiting {
  /** Tenants' waits that there may be, all together; each tenant has its share of them. */
  readonly queue?: number
  /** Milliseconds. */
  readonly waitMs?: number
  readonly signal?: Leaving
}

/**
 * One bounded amount, and how much of it each tenant holds. Those that wait for a unit take turns by tenant, not by arrival.
 */
export class FairShare {
  #limit: number
  readonly #now: () => number
  #alone: number
  #contended: number
  /** Only tenants that hold something. */
  readonly #held = new Map<string, number>()
  #used = 0
  /** The last two different tenants, which suffice to know whether another one is active. */
  #newest: Arrival = { tenant: '', at: Number.NEGATIVE_INFINITY }
  #other: Arrival = { tenant: '', at: Number.NEGATIVE_INFINITY }
  /** The tenant that last came to hold more than its share beside others. With shares of a half at most one does. */
  #largest = ''
  /** Waits by tenant, in the order of arrival. The first tenant has the next turn. */
  readonly #waits = new Map<string, (() => void)[]>()
  #waiting = 0

  /** `now` is a monotonic clock in milliseconds. */
  constructor(limit: number, now: () => number = () => performance.now(), shares: Shares = DEFAULT_SHARES) {
    this.#limit = limit
    this.#now = now
    this.#alone = shares.alone
    this.#contended = shares.contended
  }

  get used(): number {
    return this.#used
  }

  /** Changes the limit. Current holds stay, even beyond a lower limit. */
  resize(limit: number, contended: number, alone = this.#alone): void {
    this.#limit = limit
    this.#contended = contended
    this.#alone = alone
  }

  /** Takes `amount` until `release`. False, and nothing is taken, when it passes the limit or the tenant's share. */
  acquire(tenant: string, amount = 1): boolean {
    if (!this.fits(tenant, amount)) return false
    this.#used += amount
    const held = (this.#held.get(tenant) ?? 0) + amount
    this.#held.set(tenant, held)
    if (held > this.#most(this.#contended)) this.#largest = tenant
    return true
  }

  /**
   * Takes one unit until `release`, at once or after a wait. False, or a promise of it, when too many wait already, the wait is
   * over, or `signal` says that the one who waits has left.
   */
  enter(
    tenant: string,
    { queue = Number.POSITIVE_INFINITY, waitMs, signal }: Waiting = {},
  ): boolean | Promise<boolean> {
    if (this.acquire(tenant)) return true
    const waits = this.#waits.get(tenant) ?? []
    const isAtShare = waits.length > 0 && waits.length >= Math.floor(queue * this.share(tenant))
    if (this.#waiting >= queue || isAtShare) return false
    return new Promise(resolve => {
      const end = (entered: boolean) => {
        clearTimeout(timer)
        signal?.ignore(leave)
        resolve(entered)
      }
      const go = () => end(true)
      const leave = () => {
        this.#ignore(tenant, go)
        end(false)
      }
      const timer = waitMs === undefined ? undefined : setTimeout(leave, timerMs(waitMs))
      this.#waits.set(tenant, waits)
      waits.push(go)
      this.#waiting++
      signal?.listen(leave)
    })
  }

  /** Runs `work` with one unit, which it waits for as `enter` does. Undefined without one. Fails as `work` does. */
  async during<T>(tenant: string, waiting: Waiting, work: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.enter(tenant, waiting))) return undefined
    try {
      return await work()
    } finally {
      this.release(tenant)
    }
  }

  /** Whether `acquire` would succeed now. */
  fits(tenant: string, amount: number): boolean {
    return this.lack(tenant, amount) === undefined
  }

  /** Returns what blocks `acquire` now: the tenant's share, or the limit of all. */
  lack(tenant: string, amount: number): 'share' | 'limit' | undefined {
    this.#saw(tenant)
    const held = this.#held.get(tenant)
    if ((held ?? 0) + amount > this.#most(this.#shareOf(held !== undefined))) return 'share'
    return this.#used + amount > this.#limit ? 'limit' : undefined
  }

  /** Returns the maximum that a tenant may hold now. */
  most(tenant: string): number {
    return this.#most(this.share(tenant))
  }

  /** Returns the share of the limit that a tenant may hold now, from 0 to 1. */
  share(tenant: string): number {
    this.#saw(tenant)
    return this.#shareOf(this.#held.has(tenant))
  }

  /** A tenant that holds more than its share beside others, since it was alone before. */
  get excessive(): string | undefined {
    const held = this.#held.get(this.#largest) ?? 0
    return held > this.#most(this.#contended) ? this.#largest : undefined
  }

  /** Gives back what `acquire` or `enter` took: to those that wait for a unit, in turn. */
  release(tenant: string, amount = 1): void {
    const left = (this.#held.get(tenant) ?? 0) - amount
    this.#used -= amount
    if (left > 0) this.#held.set(tenant, left)
    else this.#held.delete(tenant)
    while (this.#waiting > 0) {
      const go = this.#next()
      if (!go) break
      go()
    }
  }

  #next(): (() => void) | undefined {
    for (const [tenant, waits] of this.#waits) {
      if (!this.acquire(tenant)) continue
      const go = waits.shift()
      this.#waiting--
      // Behind the tenants that have waited since.
      this.#waits.delete(tenant)
      if (waits.length > 0) this.#waits.set(tenant, waits)
      return go
    }
    return undefined
  }

  #ignore(tenant: string, go: () => void): void {
    const waits = this.#waits.get(tenant)
    const at = waits?.indexOf(go) ?? -1
    if (at < 0) return
    waits!.splice(at, 1)
    this.#waiting--
    if (waits!.length === 0) this.#waits.delete(tenant)
  }

  #most(share: number): number {
    return Math.max(1, Math.floor(this.#limit * share))
  }

  /** Returns the share of the newest tenant, which holds something or not. */
  #shareOf(holds: boolean): number {
    const isContended = this.#held.size > (holds ? 1 : 0) || this.#newest.at - this.#other.at <= ACTIVE_MS
    return isContended ? this.#contended : this.#alone
  }

  #saw(tenant: string): void {
    const now = this.#now()
    if (this.#newest.tenant === tenant) {
      this.#newest.at = now
      return
    }
    this.#other = this.#newest
    this.#newest = { tenant, at: now }
  }
}
