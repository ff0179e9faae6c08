/** Limits on money that let requests pass, or have another model used (docs/spending-limits.md#at-a-limit). */

import type { Exchange } from '../../core/exchange.ts'
import type { Exhausted, Hold, HoldRequest, Principal, Quota, Services } from '../../core/ports.ts'
import { DAY_MS } from '../../lib/period.ts'

/** A limit that has another model used. */
interface Instead {
  readonly limitId: string
  readonly use: string
}
/** Maps a request to the limit that has just refused its hold. */
const wished = new WeakMap<Exchange, Instead>()
/** Maps a request to the limits that have led to its model. */
const passedOver = new WeakMap<Exchange, Set<string>>()

/** Returns the model to plan the request with, where a limit has just refused the hold for another one. */
export function modelInstead(ex: Exchange): string | undefined {
  const instead = wished.get(ex)
  if (!instead) return undefined
  wished.delete(ex)
  passOver(ex, instead.limitId)
  return instead.use
}

function passOver(ex: Exchange, limitId: string): void {
  const ids = passedOver.get(ex) ?? new Set()
  passedOver.set(ex, ids.add(limitId))
}

/** Returns the payer. Limits that have led to the model of the request let it pass. */
export function payerAtLimit(ex: Exchange, payer: Principal): Principal {
  const ids = passedOver.get(ex)
  if (!ids) return payer
  const budgets = payer.budgets.map(one => (ids.has(one.id) ? Object.assign({}, one, { onLimit: 'notify' }) : one))
  return Object.assign({}, payer, { budgets })
}

/** Places a hold, with its limits as they let it pass. Resolves with the refusal, if there is one. */
export async function placeHold(ex: Exchange, wanted: HoldRequest, services: Services): Promise<Hold | Exhausted> {
  const hold = await services.ledger.hold(wanted)
  if ('exhausted' in hold) {
    const instead = atLimit(ex, wanted, hold, services)
    return instead ? placeHold(ex, instead, services) : hold
  }
  if (hold.passed) tellPassed(ex, wanted.principal, hold.passed, services)
  return hold
}

/**
 * Takes each refusal of a hold. Returns the hold to ask for instead if the request names the model of the limit alone.
 * Otherwise the request fails, and `modelInstead` returns the model to go on with.
 */
export function atLimit(
  ex: Exchange,
  wanted: HoldRequest,
  refused: Exhausted,
  services: Services,
): HoldRequest | undefined {
  const { principal } = wanted
  services.alerts?.refused(principal, refused)
  const limit = principal.budgets.find(({ id }) => id === refused.limitId)
  if (typeof limit?.onLimit !== 'object') return undefined
  const { use } = limit.onLimit
  const request = ex.request!
  // Another model that the request names may be the one that answers. A session keeps its model.
  const names = 'models' in request && request.models ? [] : [request.model, ex.requested.model]
  const isUsed = names.includes(use) || (ex.charges !== undefined && ex.target!.mapping.model.id === use)
  if (ex.charges && !isUsed) return undefined
  tell(ex, refused, use, services)
  if (isUsed) {
    passOver(ex, limit.id)
    return Object.assign({}, wanted, { principal: payerAtLimit(ex, principal) })
  }
  wished.set(ex, { limitId: limit.id, use })
  return undefined
}

/** Tells of limits that a hold has passed. */
export function tellPassed(ex: Exchange, payer: Principal, passed: readonly Exhausted[], services: Services): void {
  for (const one of passed) {
    services.alerts?.refused(payer, one)
    tell(ex, one, undefined, services)
  }
}

/** Logs a passed limit once in each period and day, over all nodes. */
function tell(
  ex: Exchange,
  { exhausted, limitId, period, resetsAt }: Exhausted,
  use: string | undefined,
  services: Services,
) {
  const { counters, log } = services
  const { principal } = ex.caller
  const facts = { request_id: ex.logId, limit: limitId, of: exhausted, period, key_id: principal!.keyId, use }
  const say = ({ allowed }: Quota) => allowed && log.warn(facts, 'spending limit passed')
  const told = counters.reserve(`limit ${limitId} ${resetsAt ?? ''} told`, 1, DAY_MS, 1)
  if (told instanceof Promise) told.then(say, err => log.debug({ err }, 'spending limit not told'))
  else say(told)
}
