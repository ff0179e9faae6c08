/** Slots that tenants take one at a time, within their shares. Tenants that wait take turns, not requests. */
import { FairShare, type Shares } from '../limits/share.ts'

/** A fixed number of slots and the tenants that wait for one. */
export class FairSlots {
  readonly #share: FairShare
  /** Waiters by tenant, in the order of arrival. The first tenant has the next turn. */
  readonly #waiters = new Map<string, (() => void)[]>()
  #waiting = 0

  /** `now` is a monotonic clock in milliseconds. */
  constructor(limit: number, now?: () => number, shares?: Shares) {
    this.#share = new FairShare(limit, now, shares)
  }

  /** Slots that are taken stay taken, also beyond a lower limit. */
  resize(limit: number, contended: number, alone?: number): void {
    this.#share.resize(limit, contended, alone)
  }

  /** Takes a slot until `leave`; false when no slot is free or the tenant has its share. */
  take(tenant: string): boolean {
    return this.#share.acquire(tenant, 1)
  }

  /** Calls `go` once a slot has been taken for it. False when `most` wait already, or the tenant's share of them. */
  wait(tenant: string, go: () => void, most = Number.POSITIVE_INFINITY): boolean {
    const waiters = this.#waiters.get(tenant)
    if (this.#waiting >= most) return false
    if (waiters && waiters.length >= Math.floor(most * this.#share.share(tenant))) return false
    if (waiters) waiters.push(go)
    else this.#waiters.set(tenant, [go])
    this.#waiting++
    return true
  }

  /** `go` waits no longer. */
  ignore(tenant: string, go: () => void): void {
    const waiters = this.#waiters.get(tenant)
    const at = waiters?.indexOf(go) ?? -1
    if (at < 0) return
    waiters!.splice(at, 1)
    this.#waiting--
    if (waiters!.length === 0) this.#waiters.delete(tenant)
  }

  /** Gives a slot back, to the next in turn. */
  leave(tenant: string): void {
    this.#share.release(tenant, 1)
    for (let go = this.#next(); go; go = this.#next()) go()
  }

  #next(): (() => void) | undefined {
    for (const [tenant, waiters] of this.#waiters) {
      if (!this.#share.acquire(tenant, 1)) continue
      const go = waiters.shift()
      this.#waiting--
      // Behind the tenants that have waited since.
      this.#waiters.delete(tenant)
      if (waiters.length > 0) this.#waiters.set(tenant, waiters)
      return go
    }
    return undefined
  }
}
