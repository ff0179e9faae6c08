/** Calls and sessions that are open: to one provider, and with it to all own providers of its owner. */
import type { Provider } from '../core/translator.ts'
import { aloneOf, FairShare, type Shares } from '../limits/share.ts'

/** An organization alone may have all calls of a provider of its own, or of a small one. */
const SHARES: Shares = { alone: 1, contended: 1 / 2 }

/** A provider, and how many calls to it, and to all own ones of its owner, there may be at the same time. */
export type CalledProvider = Pick<Provider, 'id' | 'owner' | 'concurrency' | 'ownerConcurrency'>

/** Counts the open calls to one provider, or to all own providers of an organization. */
export class InFlightCount {
  readonly #owner: InFlightCount | undefined
  readonly #emptied: (() => void) | undefined
  readonly #share = new FairShare(0, undefined, SHARES)

  /** `emptied`, of own providers and their owners, runs whenever nothing is counted here any more. */
  constructor(owner?: InFlightCount, emptied?: () => void) {
    this.#owner = owner
    this.#emptied = emptied
  }

  /** Counts one until `end`. False when there are as many as may be, or the tenant has its share of them. */
  begin(tenant: string, concurrency: number, ownerConcurrency = Number.POSITIVE_INFINITY): boolean {
    const isForAll = this.#emptied === undefined
    this.#share.resize(concurrency, SHARES.contended, isForAll ? aloneOf(concurrency) : SHARES.alone)
    if (!this.#share.acquire(tenant, 1)) return false
    if (!this.#owner || this.#owner.begin(tenant, ownerConcurrency)) return true
    this.#release(tenant)
    return false
  }

  end(tenant: string): void {
    this.#release(tenant)
    this.#owner?.end(tenant)
  }

  #release(tenant: string): void {
    this.#share.release(tenant, 1)
    if (this.#share.used === 0) this.#emptied?.()
  }
}

/** The counts of all providers of a process. */
export class InFlightCounts {
  readonly #ofProviders = new Map<string, InFlightCount>()
  readonly #ofOwners = new Map<string, InFlightCount>()

  /** Providers and owners that have a count: own ones only while a call is open. */
  get size(): number {
    return this.#ofProviders.size + this.#ofOwners.size
  }

  /**
   * Counts a call until `end` of what it returns. Undefined when there are as many as may be, or the tenant has its share
   * of them.
   */
  begin(tenant: string, { id, owner, concurrency, ownerConcurrency }: CalledProvider): InFlightCount | undefined {
    const count = owner === undefined ? this.#shared(id) : this.#own(id, owner)
    return count.begin(tenant, concurrency, ownerConcurrency) ? count : undefined
  }

  #shared(id: string): InFlightCount {
    let count = this.#ofProviders.get(id)
    if (!count) {
      count = new InFlightCount()
      this.#ofProviders.set(id, count)
    }
    return count
  }

  /** Whatever is in the maps counts something, or is about to: no second count of the same begins beside it. */
  #own(id: string, owner: string): InFlightCount {
    return entry(this.#ofProviders, `${owner} ${id}`, entry(this.#ofOwners, owner))
  }
}

function entry(all: Map<string, InFlightCount>, key: string, owner?: InFlightCount): InFlightCount {
  let count = all.get(key)
  if (!count) {
    count = new InFlightCount(owner, () => all.delete(key))
    all.set(key, count)
  }
  return count
}
