/**
 * Refuses work that the process has no room for, before a byte of body is read. Below `auth` it shares the places out
 * among organizations; above it, all callers count as one.
 */

import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import type { Load, Services } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import { type Infer, s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { Hysteresis } from '../../lib/hysteresis.ts'
import { perObject } from '../../lib/per-object.ts'
import { isCopy } from '../copy.ts'
import { FairLimiter, type FairLimits, type Permit } from './fair-limiter.ts'

const options = s.object({
  /** Requests at the same time. */
  in_flight: s.default(s.integer({ minimum: 1 }), 1000),
  /** Requests that may wait for one of those to end, and how long. */
  queue: s.default(s.integer({ minimum: 0 }), 100),
  wait: s.default(s.duration(), '1s'),
  /** Share of both that one organization may take while others ask too; 1 is all. */
  org_share: s.default(s.number({ minimum: 0.01, maximum: 1 }), 0.25),
  /** Event-loop delay above which new requests are refused, until it has fallen to half of that. */
  lag: s.default(s.duration(), '200ms'),
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
