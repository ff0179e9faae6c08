/** Who pays for an attempt, whether that may be, and what it may come to. */
import { errors, type GatewayError } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import { costOf, type Money } from '../core/money.ts'
import { namesOf } from '../core/offer.ts'
import { isPremium, type Plan } from '../core/plan.ts'
import type { Allowance, Exhausted, Principal } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { Usage } from '../core/usage.ts'
import { isByok } from '../routing/policy.ts'

/** With the limits of the caller's own key at the provider, where it has some. */
export function payerOf(ex: Exchange): Principal {
  const principal = ex.principal!
  const { budgets = [] } = ex.target!.credential ?? {}
  return budgets.length === 0 ? principal : { ...principal, budgets: [...principal.budgets, ...budgets] }
}

/** What the organization's coding plan grants; undefined without one. Throws for what the plan excludes (interface 8.6). */
export function allowanceOf(ex: Exchange): Allowance | undefined {
  const { plan: subscription } = ex.principal!
  if (!subscription) return undefined
  const plan = ex.snapshot.plans.get(subscription.plan)
  if (!plan) return { monthly: 0n, premium: undefined }
  checkPlan(ex, plan)
  return { monthly: plan.monthly, premium: isPremium(plan, ex.target!.price) ? plan.weeklyPremium : undefined }
}

function checkPlan(ex: Exchange, plan: Plan): void {
  if (!plan.endpoints.has(ex.endpoint.name)) throw errors.forbidden('Coding plans cannot use this endpoint.')
  if (ex.requestedProvider !== null) {
    throw errors.forbidden('Coding plans route by themselves: name the model without a provider.')
  }
  const { service_tier: tier, routing } = ex.request as { service_tier?: string | null; routing?: string | null }
  if (tier != null && !plan.serviceTiers.has(tier)) {
    throw errors.forbidden(`Coding plans cannot use service_tier "${tier}"; use ${listed(plan.serviceTiers)}.`)
  }
  if (routing != null && !plan.routing.has(routing)) {
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

/** Tokens of one answer, where nothing is known of its model. */
const MOST_OUTPUT = 1_000_000

/**
 * What the request may cost at most, as far as that can be told beforehand; nano-USD. Null when something that it asks
 * for has no known price.
 */
export function estimate(ex: Exchange, defaultOutput: number): Money | null {
  const { mapping, price } = ex.target!
  if (!price) return null
  const request = ex.request!
  const { operation } = ex
  const ceiling = mapping.maxOutput ?? mapping.contextLength ?? MOST_OUTPUT
  const usage: Usage = {
    prompt: ex.promptTokens,
    completion: operation.answerTokens?.(request, defaultOutput, ceiling) ?? 0,
    ...operation.extras?.(request, mapping.model),
  }
  if (price.rates.image !== undefined) usage.image = operation.images?.(request) ?? 0
  const terms = operation.terms?.(request)
  const asked = costOf(usage, price, terms)
  if (!asked || !price.tierFactors || terms?.tier === undefined) return asked?.total ?? null
  // A cheaper tier may not be the one that is served.
  const usual = costOf(usage, price, { ...terms, tier: undefined })!
  return asked.total > usual.total ? asked.total : usual.total
}

/** For what was read and written, at `rate` in pico-USD per token; rounded to nano-USD. */
export const storageOf = ({ prompt = 0, completion = 0 }: Usage, rate: bigint): Money =>
  (BigInt(Math.round(prompt + completion)) * rate + 500n) / 1000n

/** Why a limit refuses; 402, because it is about money (field notes sections 5 and 6). */
export function refusal({ exhausted, period, resetsAt }: Exhausted): GatewayError {
  const until = resetsAt === undefined ? '' : ` It resets at ${new Date(resetsAt).toISOString()}.`
  switch (exhausted) {
    case 'key':
      return errors.spent(`API key reached its ${period === 'total' ? '' : 'current period '}usage limit.${until}`)
    case 'session':
      return errors.spent('Session reached its usage limit.')
    case 'provider-key':
      return errors.providerKeySpent(until)
    case 'member':
      return errors.spent(`Member has reached their ${period === 'total' ? 'total' : 'period'} spend budget.${until}`)
    case 'premium':
      return errors.spent(`Dev Plan weekly premium limit reached. Use a model that is not premium.${until}`)
    case 'plan': {
      const renewal = resetsAt === undefined ? '' : ` on ${new Date(resetsAt).toISOString().slice(0, 10)}`
      return errors.spent(`Dev Plan credit limit reached. Upgrade your plan or wait for renewal${renewal}.`)
    }
  }
}
