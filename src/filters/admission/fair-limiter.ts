/** Places for requests: so many at work, so many waiting for a short time, shared out among organizations. */
import type { Cancellation } from '../../core/cancel.ts'
import type { Metrics } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { FairShare } from '../../limits/share.ts'

/** Bounds of a `FairLimiter`; `waitMs` is in milliseconds. */
export interface FairLimits {
  /** Requests at work at the same time. */
  readonly inFlight: number
  /** Requests that may wait until one of those ends. */
  readonly queue: number
  readonly waitMs: number
  /** Share of places and queue that one organization may take while others use them too; 0 to 1. */
  readonly share: number
}

/** Place of one request; held until the request ends. */
export interface Permit {
  readonly tenant: string
}

/**
 * An organization alone may take all there is. While another one uses them too, each has its share and no more, so that
 * the one that floods refuses itself; and those that wait take turns by organization, not by arrival.
 */
export class FairLimiter {
  readonly #metrics: Pick<Metrics, 'inFlight' | 'waiting'>
  readonly #places: FairShare

  /** `now` is a monotonic clock in milliseconds. */
  constructor(
    { inFlight, share }: FairLimits,
    metrics: Pick<Metrics, 'inFlight' | 'waiting'>,
    now: () => number = () => performance.now(),
  ) {
    this.#places = new FairShare(inFlight, now, { alone: 1, contended: share })
    this.#metrics = metrics
  }

  /**
   * Takes a permit, at once or after a wait; the caller must leave it. Throws or rejects with 529 when the queue is
   * full or the wait is over, and with the reason of `signal` when the client leaves. `rules` apply from now on; permits
   * already taken stay valid.
   */
  take(tenant: string, { inFlight, share, queue, waitMs }: FairLimits, signal: Cancellation): Permit | Promise<Permit> {
    this.#places.resize(inFlight, share)
    const entered = this.#places.enter(tenant, { queue, waitMs, signal })
    if (entered === true) return this.#entered(tenant)
    if (entered === false) throw errors.overloaded()
    this.#metrics.waiting(1)
    return entered.then(hasPlace => {
      this.#metrics.waiting(-1)
      if (!hasPlace) throw signal.reason ?? errors.overloaded()
      return this.#entered(tenant)
    })
  }

  leave({ tenant }: Permit): void {
    this.#metrics.inFlight(-1)
    this.#places.release(tenant)
  }

  #entered(tenant: string): Permit {
    this.#metrics.inFlight(1)
    return { tenant }
  }
}
