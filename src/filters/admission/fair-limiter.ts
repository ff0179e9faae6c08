/** Places for requests: so many at work, so many waiting for a short time, shared out among organizations. */
import type { Cancellation } from '../../core/cancel.ts'
import { errors, type GatewayError } from '../../core/error.ts'
import { FairSlots } from '../../core/fair-slots.ts'
import type { Metrics } from '../../core/ports.ts'
import { timerMs } from '../../lib/timer.ts'

/** What bounds a `FairLimiter`; `waitMs` is in milliseconds. */
export interface FairLimits {
  /** Requests at work at the same time. */
  readonly inFlight: number
  /** Requests that may wait until one of those ends. */
  readonly queue: number
  readonly waitMs: number
  /** Of places and queue, what one organization may take while others use them too; 0 to 1. */
  readonly share: number
}

/** What a request holds until it ends: the organization whose share it takes. */
export interface Permit {
  readonly tenant: string
}

/**
 * An organization alone may take all there is. While another one uses them too, each has its share and no more, so that
 * the one that floods refuses itself; and those that wait take turns by organization, not by arrival.
 */
export class FairLimiter {
  readonly #metrics: Pick<Metrics, 'inFlight' | 'waiting'>
  readonly #slots: FairSlots

  /** `now` is a monotonic clock in milliseconds. */
  constructor(
    { inFlight, share }: FairLimits,
    metrics: Pick<Metrics, 'inFlight' | 'waiting'>,
    now: () => number = () => performance.now(),
  ) {
    this.#slots = new FairSlots(inFlight, now, { alone: 1, contended: share })
    this.#metrics = metrics
  }

  /**
   * Takes a permit, at once or after a wait; the caller must leave it. Throws or rejects with 529 when the queue is
   * full or the wait is over, and with the reason of `signal` when the client leaves. `rules` apply from now on; permits
   * already taken stay valid.
   */
  take(tenant: string, rules: FairLimits, signal: Cancellation): Permit | Promise<Permit> {
    this.#slots.resize(rules.inFlight, rules.share)
    return this.#slots.take(tenant) ? this.#entered(tenant) : this.#wait(tenant, rules, signal)
  }

  leave({ tenant }: Permit): void {
    this.#metrics.inFlight(-1)
    this.#slots.leave(tenant)
  }

  #entered(tenant: string): Permit {
    this.#metrics.inFlight(1)
    return { tenant }
  }

  #wait(tenant: string, { queue, waitMs }: FairLimits, signal: Cancellation): Promise<Permit> {
    let enter: (place: Permit) => void
    let refuse: (error: GatewayError) => void
    const placed = new Promise<Permit>((resolve, reject) => {
      enter = resolve
      refuse = reject
    })
    const done = () => {
      clearTimeout(timer)
      signal.ignore(gone)
      this.#metrics.waiting(-1)
    }
    const go = () => {
      done()
      enter(this.#entered(tenant))
    }
    const leave = (error: GatewayError) => {
      this.#slots.ignore(tenant, go)
      done()
      refuse(error)
    }
    const gone = () => leave(signal.reason ?? errors.aborted())
    if (!this.#slots.wait(tenant, go, queue)) throw errors.overloaded()
    this.#metrics.waiting(1)
    const timer = setTimeout(() => leave(errors.overloaded()), timerMs(waitMs))
    signal.listen(gone)
    return placed
  }
}
