/** Calls and sessions that are open: to one provider, and with it to all own providers of its owner. */
import { FairShare, type Shares } from '../core/fair-share.ts'

/** An organization alone may have all calls of a provider; slow ones must not keep the provider from others. */
const SHARES: Shares = { alone: 1, contended: 1 / 2 }

/** How many calls may be open; fields of the provider's manifest. */
export interface CallLimits {
  /** Calls at the same time. */
  readonly concurrency: number
  /** The same for all own providers of its owner together. */
  readonly ownerConcurrency?: number | undefined
}

/** Counts the open calls to one provider, or to all own providers of an organization. */
export class InFlightCount {
  readonly #owner: InFlightCount | undefined
  readonly #share = new FairShare(0, undefined, SHARES)

  constructor(owner?: InFlightCount) {
    this.#owner = owner
  }

  /** Counts one until `end`. False when there are as many as may be, or the tenant has its share of them. */
  begin(tenant: string, { concurrency, ownerConcurrency = Number.POSITIVE_INFINITY }: CallLimits): boolean {
    this.#share.resize(concurrency, SHARES.contended)
    if (!this.#share.acquire(tenant, 1)) return false
    if (!this.#owner || this.#owner.begin(tenant, { concurrency: ownerConcurrency })) return true
    this.#share.release(tenant, 1)
    return false
  }

  end(tenant: string): void {
    this.#share.release(tenant, 1)
    this.#owner?.end(tenant)
  }
}

/** The counts of all providers of a process. */
export class InFlightCounts {
  readonly #ofProviders = new Map<string, InFlightCount>()
  readonly #ofOwners = new Map<string, InFlightCount>()

  of({ id, owner }: { readonly id: string; readonly owner?: string | undefined }): InFlightCount {
    const ofOwner = owner === undefined ? undefined : countOf(this.#ofOwners, owner)
    return countOf(this.#ofProviders, owner === undefined ? id : `${owner} ${id}`, ofOwner)
  }
}

function countOf(all: Map<string, InFlightCount>, key: string, owner?: InFlightCount): InFlightCount {
  let count = all.get(key)
  if (!count) {
    count = new InFlightCount(owner)
    all.set(key, count)
  }
  return count
}
