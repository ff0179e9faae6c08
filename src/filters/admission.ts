/**
 * Refuses work that the process has no room for, before a byte of body is read. Below `auth` it shares the places out
 * among organizations; above it, all callers count as one.
 */

import type { Cancellation } from '../core/cancel.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Load, Metrics, Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'
import { Hysteresis } from '../lib/hysteresis.ts'
import { perObject } from '../lib/per-object.ts'
import { FairShare } from '../limits/share.ts'
import { isCopy } from './copy.ts'

const options = s.object({
  /** Requests at the same time. */
  in_flight: s.default(s.integer({ minimum: 1 }), 1000),
  /** Requests that may wait for one of those to end, and how long. */
  queue: s.default(s.integer({ minimum: 0 }), 100),
  wait: s.default(s.duration(), '1s'),
  /** Share of both that one organization may take while others ask too; 1 is all. */
  org_share: s.default(s.number({ minimum: 0.01, maximum: 1 }), 0.25),
  /** Event-loop delay above which new requests are refused, until it has fallen to half of that. */
  lag: s.default(s.duration({ type: 'string', pattern: '[1-9]', description: 'a duration above 0' }), '200ms'),
  /** Share of the heap's limit above which new requests are refused, until it has fallen by a twentieth of it. */
  memory: s.default(s.number({ minimum: 0.01, maximum: 1 }), 0.95),
})

/** Throws 529 while the process is overloaded, or its places and the queue for them are full. */
export const admission: FilterFactory<Infer<typeof options>> = {
  name: 'admission',
  options,
  create(given, services, place = '') {
    const { load } = services
    const rules = { inFlight: given.in_flight, queue: given.queue, waitMs: given.wait, share: given.org_share }
    const places = placesOf(services, place, rules)
    const late = new Hysteresis(given.lag, given.lag / 2)
    const full = new Hysteresis(given.memory, given.memory * 0.95)
    const taken = new WeakMap<Exchange, Permit>()
    const leave = (ex: Exchange) => {
      const place = taken.get(ex)
      if (!place) return
      taken.delete(ex)
      places.leave(place)
    }
    const enter = (ex: Exchange, got: Permit, next: () => Promise<Reply>) => {
      taken.set(ex, got)
      // Sessions have bounds of their own, and are idle most of the time.
      return ex.http.upgrade ? next().finally(() => leave(ex)) : next()
    }
    return {
      handle(ex, next) {
        // Their number has a bound of its own, so that they take no place of a tenant's request.
        if (isCopy(ex)) return next()
        if (isShedding(load, late, full)) throw errors.overloaded()
        const got = places.take(ex.caller.tenant, rules, ex.signal)
        return got instanceof Promise ? got.then(place => enter(ex, place, next)) : enter(ex, got, next)
      },
      finish: leave,
    }
  },
}

/** Both are read every time, so that each falls back by itself. */
function isShedding(load: Load, late: Hysteresis, full: Hysteresis): boolean {
  const lagging = late.isOver(load.lagMs())
  return full.isOver(load.memory()) || lagging
}

/** Limiters outlive reloads, so that running requests stay counted. */
const limitersOf = perObject((_: Services) => new Map<string, FairLimiter>())
function placesOf(services: Services, place: string, rules: FairLimits): FairLimiter {
  const byPlace = limitersOf(services)
  let places = byPlace.get(place)
  if (!places) {
    places = new FairLimiter(rules, services.metrics)
    byPlace.set(place, places)
  }
  return places
}

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
 * Places for requests: so many at work, so many waiting for a short time.
 *
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
