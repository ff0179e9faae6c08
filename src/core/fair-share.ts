/** Shares a bounded amount of something (bytes, places, entries) among tenants, so that none can take all of it. */

/** What one tenant may hold of the limit: alone, which leaves room for a newcomer, and while another one asks. */
const ALONE = 3 / 4
const CONTENDED = 1 / 2
/** A tenant counts as asking while it holds anything, and for this long after it last asked. */
const ACTIVE_MS = 10 * 60_000

/** When a tenant last asked. */
interface Arrival {
  readonly tenant: string
  readonly at: number
}

export class FairShare {
  readonly #limit: number
  readonly #now: () => number
  /** Only tenants that hold something. */
  readonly #held = new Map<string, number>()
  #used = 0
  /** The last two tenants that differ: enough to tell whether another one asks. */
  #newest: Arrival = { tenant: '', at: Number.NEGATIVE_INFINITY }
  #other: Arrival = this.#newest

  /** `now` is a monotonic clock in milliseconds. */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit
    this.#now = now
  }

  get used(): number {
    return this.#used
  }

  /** Takes `amount` until `release`. False, and nothing is taken, when it passes the limit or the tenant's share. */
  acquire(tenant: string, amount: number): boolean {
    if (!this.fits(tenant, amount)) return false
    this.#used += amount
    this.#held.set(tenant, (this.#held.get(tenant) ?? 0) + amount)
    return true
  }

  /** Whether `acquire` would succeed now. */
  fits(tenant: string, amount: number): boolean {
    this.#saw(tenant)
    if (this.#used + amount > this.#limit) return false
    return (this.#held.get(tenant) ?? 0) + amount <= this.#limit * this.#shareOf(tenant)
  }

  /** Gives back what `acquire` took. */
  release(tenant: string, amount: number): void {
    const left = (this.#held.get(tenant) ?? 0) - amount
    this.#used -= amount
    if (left > 0) this.#held.set(tenant, left)
    else this.#held.delete(tenant)
  }

  #shareOf(tenant: string): number {
    if (this.#held.size > (this.#held.has(tenant) ? 1 : 0)) return CONTENDED
    return this.#now() - this.#other.at <= ACTIVE_MS ? CONTENDED : ALONE
  }

  #saw(tenant: string): void {
    if (this.#newest.tenant !== tenant) this.#other = this.#newest
    this.#newest = { tenant, at: this.#now() }
  }
}
