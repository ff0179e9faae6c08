/** Decides which funds pay for an attempt, checks that they may, and how much to hold. */

import { hash } from 'node:crypto'
import type { ChatRequest } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import { formatMoney, type Money, type Price } from '../../core/money.ts'
import { namesOf } from '../../core/offer.ts'
import { isPremium, type Plan } from '../../core/plan.ts'
import { catalogOf, type EndUserOptions } from '../../core/policy.ts'
import type { Allowance, Budget, Exhausted, Principal } from '../../core/ports.ts'
import type { Target } from '../../core/translator.ts'
import type { Usage } from '../../core/usage.ts'
import { errors, type GatewayError, type Unaffordable } from '../../lib/error.ts'
import { namedModels, namesOne } from '../../routing/named-models.ts'
import { isByok } from '../../routing/policy.ts'
import { withoutSuffix } from '../../routing/preferences.ts'
import { RequestQuery, type RoutedRequest } from '../../routing/query.ts'
import { payerAtLimit } from './at-limit.ts'

/** With the limits of its end user, and of the caller's own key at the provider, where they have some. */
export function payerOf(ex: Exchange, principal = ex.caller.principal!): Principal {
  const { endUser } = ex.caller.labels
  const limit = endUser === undefined ? undefined : ex.snapshot.endUsers?.limit
  const { budgets = NO_LIMITS } = ex.target!.credential ?? {}
  if (!limit) {
    const payer = budgets.length === 0 ? principal : { ...principal, budgets: [...principal.budgets, ...budgets] }
    return payerAtLimit(ex, payer)
  }
  const own = endUserLimit(principal.orgId, endUser!, limit)
  return payerAtLimit(ex, { ...principal, endUser, budgets: [own, ...principal.budgets, ...budgets] })
}
const NO_LIMITS: readonly Budget[] = []

/** One for each end user of an organization, through whichever of its keys it comes; another one for each period. */
const endUserLimit = (
  orgId: string,
  name: string,
  { limit, period, onLimit }: NonNullable<EndUserOptions['limit']>,
): Budget => ({
  id: `eu_${hash('sha256', JSON.stringify([orgId, name, period])).slice(0, 32)}`,
  of: 'end-user',
  limit,
  period,
  zone: 'UTC',
  onLimit,
})

/** The grant of the organization's plan, or undefined. Throws for what the plan excludes (docs/contract.md#plans). */
export function allowanceOf(ex: Exchange): Allowance | undefined {
  const { plan: subscription } = ex.caller.principal!
  if (!subscription) return undefined
  const plan = ex.snapshot.plans.get(subscription.plan)
  if (!plan) return { monthly: 0n, premium: undefined }
  checkPlan(ex, plan)
  return { monthly: plan.monthly, premium: isPremium(plan, ex.target!.price) ? plan.weeklyPremium : undefined }
}

/** Judges what the client says: targets and fields of virtual models are the operator's choice. */
function checkPlan(ex: Exchange, plan: Plan): void {
  if (!plan.endpoints.has(ex.endpoint.name)) throw errors.forbidden('Coding plans cannot use this endpoint.')
  const request = (ex.requested.written ?? ex.request) as RoutedRequest & Pick<ChatRequest, 'service_tier'>
  const { provider, service_tier: tier } = request
  const query = new RequestQuery(ex, catalogOf(ex), request, undefined, true)
  const named = namesOne(query) ? [] : namedModels(query)
  const isPinned = named.some(({ requested, virtual }) => virtual === undefined && requested.requestedProvider !== null)
  if (ex.requested.provider !== null || isPinned || provider?.order || provider?.only || provider?.ignore) {
    throw errors.forbidden('Coding plans route by themselves: name the model without a provider.')
  }
  if (tier != null && !plan.serviceTiers.has(tier)) {
    throw errors.forbidden(`Coding plans cannot use service_tier "${tier}"; use ${listed(plan.serviceTiers)}.`)
  }
  const routing = [request.model, ...(request.models ?? [])]
    .map(name => request.routing ?? withoutSuffix(name).strategy ?? provider?.sort)
    .find(one => one != null && !plan.routing.has(one))
  if (routing != null) {
    throw errors.unsupported(
      `Coding plans cannot use routing "${routing}"; use ${listed(plan.routing)}.`,
      'routing',
      'invalid_parameters',
    )
  }
}

const listed = (values: ReadonlySet<string>): string => [...values].join(', ')

/** The target at the price that this caller pays; the same target when there is no discount. */
export function discounted(target: Target, { discounts }: Principal): Target {
  if (discounts.length === 0 || !target.price || isByok(target.credential)) return target
  const { provider, mapping } = target
  const found = discounts.find(
    ({ provider: of, model }) =>
      (of === null || of === provider.id) && (model === null || namesOf(mapping).includes(model)),
  )
  return found ? { ...target, price: { ...target.price, discount: found.millionths } } : target
}

const NOTHING: Price = { rates: { prompt: 0n, completion: 0n }, tiers: [] }

/** Returns the target with a price of zero, for work that its provider does not charge. */
export const uncharged = ({ mapping, provider, credential, translator, region, baseUrl }: Target): Target =>
  region === undefined
    ? { mapping, provider, credential, translator, price: NOTHING }
    : { mapping, provider, credential, translator, price: NOTHING, region, baseUrl }

/** For what was read and written, at `rate` in pico-USD per token; rounded to nano-USD. */
export const storageOf = ({ prompt = 0, completion = 0 }: Usage, rate: bigint): Money =>
  (BigInt(Math.round(prompt + completion)) * rate + 500n) / 1000n

/** The output limit that a refused request could have. */
export interface OutputLimit {
  /** Parameter that sets the limit. */
  readonly param: 'max_tokens' | 'max_output_tokens'
  /** Affordable tokens; 0 when the prompt alone is too expensive. */
  readonly tokens: number
}

/**
 * Why not even `least` can be held; 402, because it is about money (docs/contract.md#plans). `limit`: undefined where a lower
 * one would not do, null where none can be sent. `of`: what is not covered, where that is no prompt.
 */
export function exhaustedError(
  { exhausted, endUser, period, resetsAt, room: left, held }: Exhausted,
  least: Money,
  limit?: OutputLimit | null,
  of?: Unaffordable,
): GatewayError {
  const until = resetsAt === undefined ? '' : ` It resets at ${new Date(resetsAt).toISOString()}.`
  const affordable = limit?.tokens ? ` There is room for ${limit.param} of ${limit.tokens} at most.` : ''
  const waits = held > 0n && left + held >= least
  const inFlight = waits ? ` ${heldText(held)}: repeat this one when they have ended.` : ''
  const room = affordable + inFlight
  switch (exhausted) {
    case 'credits':
      if (limit === null && !of) return withText(errors.unlimited(), inFlight)
      if (limit?.tokens) return withText(lowerLimit(limit), inFlight)
      return waits ? waitForCredits(held) : insufficientCredits(limit, of)
    case 'key':
      return errors.spent(
        `API key reached its ${period === 'total' ? '' : 'current period '}usage limit.${until}${room}`,
      )
    case 'end-user':
      return errors.spent(
        `End user "${endUser}" has reached their ${period === 'total' ? 'total' : 'period'} spend limit.${until}${room}`,
      )
    case 'session':
      return errors.spent(`Session reached its usage limit.${room}`)
    case 'provider-key':
      return errors.providerKeySpent(until + room)
    case 'member':
    case 'project': {
      const whose = exhausted === 'member' ? 'Member has reached their' : 'Project has reached its'
      return errors.spent(`${whose} ${period === 'total' ? 'total' : 'period'} spend budget.${until}${room}`)
    }
    case 'premium':
      return errors.spent(`Coding plan weekly premium limit reached. Use a model that is not premium.${until}${room}`)
    case 'plan': {
      const renewal = resetsAt === undefined ? '' : ` on ${new Date(resetsAt).toISOString().slice(0, 10)}`
      return errors.spent(`Coding plan credit limit reached. Upgrade your plan or wait for renewal${renewal}.${room}`)
    }
  }
}

const lowerLimit = ({ param, tokens }: OutputLimit): GatewayError =>
  errors.insufficientCredits(`the balance affords ${param} of ${tokens} at most`, `lower ${param}`)

/** The request itself is not too large. */
const waitForCredits = (held: Money): GatewayError =>
  errors.insufficientCredits(`the balance does not cover it while ${heldText(held)}`, 'repeat it when they have ended')

function insufficientCredits(limit: OutputLimit | null | undefined, of: Unaffordable | undefined): GatewayError {
  const part = of ?? (limit ? PROMPT : undefined)
  return part
    ? errors.insufficientCredits(`the balance does not cover ${part.what}`, part.instead)
    : errors.insufficientCredits()
}

const PROMPT: Unaffordable = { what: 'its prompt', instead: 'shorten the prompt' }

/** It is given back as far as it is not used. */
const heldText = (held: Money): string => `${formatMoney(held)} USD are held for requests in flight`

const withText = (error: GatewayError, more: string): GatewayError =>
  more === '' ? error : error.with({ message: error.message + more })
