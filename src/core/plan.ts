/** Coding plans: what an organization gets for a monthly price, as the configuration declares them. */
import type { Money, Price } from './money.ts'

/** The coding plans that there can be; `plans` in gateway.yaml says which there are. */
export const planNames = ['lite', 'pro', 'max'] as const
/** The name of a coding plan. */
export type PlanName = (typeof planNames)[number]

/** Amounts in nano-USD, rates in pico-USD per token. */
export interface Plan {
  /** Credits of a month. */
  readonly monthly: Money
  /** Part of the credits that premium models may use in a week. */
  readonly weeklyPremium: Money
  /** A model is premium from either of these prices on. */
  readonly premiumFrom: { readonly prompt: bigint; readonly completion: bigint }
  /** Names of the billable endpoints that it may call. */
  readonly endpoints: ReadonlySet<string>
  /** Values of `service_tier` and `routing` that it may ask for. */
  readonly serviceTiers: ReadonlySet<string>
  readonly routing: ReadonlySet<string>
}

/** The plans of the configuration; organizations can have no other. */
export type Plans = ReadonlyMap<PlanName, Plan>

/** Whether the plan counts a model at this price against the week. A model of unknown price is not paid for at all. */
export const isPremium = ({ premiumFrom }: Plan, price: Price | undefined): boolean =>
  price !== undefined &&
  ((price.rates.prompt ?? 0n) >= premiumFrom.prompt || (price.rates.completion ?? 0n) >= premiumFrom.completion)
