/** The bytes that requests may make the process keep, all together: bodies, fetched images, answers that are held. */

import { Hysteresis } from '../lib/hysteresis.ts'
import { FairShare } from './share.ts'

/** Maximum bytes that one request may take from the reserve. Larger requests cannot use it. */
const RESERVED_REQUEST_BYTES = 128 * 1024
/** Share of the budget that is the reserve. */
const RESERVE_SHARE = 1 / 8
/** Maximum bytes of one request while memory is scarce. */
const SCARCE_REQUEST_BYTES = 1024 * 1024
/** Shares of the heap's limit. */
const SCARCE_HEAP_SHARE = { from: 0.85, to: 0.8 }

/** Memory of one request; grows as bytes arrive. */
export interface MemoryLease {
  readonly held: number
  /**
   * Takes so many bytes more. False, and nothing is taken, when there is no room for them. `reserved`: up to how many in
   * all come from the reserve.
   */
  grow(bytes: number, reserved?: number): boolean
  /** Gives all back but this share of it, from 0 to 1. */
  keep(share: number): void
  /** Gives all of it back; the lease can grow again. */
  release(): void
}

/** Share of the heap's limit that is in use, from 0 to 1. */
interface HeapLoad {
  memory(): number
}

/** Both parts are shared out among tenants (docs/contract.md#shares). */
export class MemoryBudget {
  readonly #main: FairShare
  readonly #reserve: FairShare
  readonly #load: HeapLoad
  readonly #scarce = new Hysteresis(SCARCE_HEAP_SHARE.from, SCARCE_HEAP_SHARE.to)

  /** While `load` says that memory is scarce, no request gets more than 1 MiB. */
  constructor(limit: number, load: HeapLoad, now?: () => number) {
    this.#main = new FairShare(limit * (1 - RESERVE_SHARE), now)
    this.#reserve = new FairShare(limit * RESERVE_SHARE, now)
    this.#load = load
  }

  get used(): number {
    return this.#main.used + this.#reserve.used
  }

  /** A lease that holds nothing yet; `expected` is what it will come to, as far as that is declared. */
  lease(tenant: string, expected = 0): MemoryLease {
    return new Lease(this, tenant, expected > RESERVED_REQUEST_BYTES)
  }

  /** Whether a lease could grow to so many bytes now. */
  fits(tenant: string, bytes: number): boolean {
    return (
      !this.isTooLarge(bytes) &&
      ((bytes <= RESERVED_REQUEST_BYTES && this.#reserve.fits(tenant, bytes)) || this.#main.fits(tenant, bytes))
    )
  }

  /** Bytes that large requests of a tenant may keep now, all together. */
  most(tenant: string): number {
    return this.#main.most(tenant)
  }

  /** Whether memory is too scarce for a request that keeps so many bytes. */
  isTooLarge(bytes: number): boolean {
    return bytes > SCARCE_REQUEST_BYTES && this.#scarce.isOver(this.#load.memory())
  }

  /** Moves a lease from `held` bytes in one part to `wanted` in the same or the other; false when nothing has changed. */
  move(tenant: string, held: number, wanted: number, from: Part, to: Part): boolean {
    const target = this.#part(to)
    if (from === to) return target.acquire(tenant, wanted - held)
    if (!target.acquire(tenant, wanted)) return false
    this.#part(from).release(tenant, held)
    return true
  }

  release(tenant: string, held: number, from: Part): void {
    this.#part(from).release(tenant, held)
  }

  #part(part: Part): FairShare {
    return part === 'main' ? this.#main : this.#reserve
  }
}

type Part = 'main' | 'reserve'

/** In the reserve while it is small, and in the rest from then on, or when the reserve is used up. */
class Lease implements MemoryLease {
  readonly #budget: MemoryBudget
  readonly #tenant: string
  #part: Part
  #held = 0

  constructor(budget: MemoryBudget, tenant: string, large: boolean) {
    this.#budget = budget
    this.#tenant = tenant
    this.#part = large ? 'main' : 'reserve'
  }

  get held(): number {
    return this.#held
  }

  grow(bytes: number, reserved = RESERVED_REQUEST_BYTES): boolean {
    const wanted = this.#held + bytes
    if (this.#budget.isTooLarge(wanted)) return false
    const stays = this.#part === 'main' || wanted <= reserved
    return (stays && this.#moved(wanted, this.#part)) || (this.#part === 'reserve' && this.#moved(wanted, 'main'))
  }

  keep(share: number): void {
    const kept = Math.ceil(this.#held * share)
    if (this.#held > kept) this.#budget.release(this.#tenant, this.#held - kept, this.#part)
    this.#held = kept
  }

  release(): void {
    if (this.#held > 0) this.#budget.release(this.#tenant, this.#held, this.#part)
    this.#held = 0
  }

  #moved(wanted: number, to: Part): boolean {
    if (!this.#budget.move(this.#tenant, this.#held, wanted, this.#part, to)) return false
    this.#held = wanted
    this.#part = to
    return true
  }
}
