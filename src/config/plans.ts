/** Coding plans of the configuration → plans as filters use them. */
import type { Endpoint } from '../core/endpoint.ts'
import { parseDecimal, parseMoney } from '../core/money.ts'
import { type Plan, type PlanName, type Plans, planNames } from '../core/plan.ts'
import { type Infer, s } from '../core/schema.ts'
import { unknownName } from '../lib/nearest.ts'
import type { ConfigFile } from './file.ts'

/** USD per million tokens with 6 decimals is pico-USD per token. */
const TOKEN_PLACES = 6

const usd = s.decimal({
  pattern: '^\\d{1,9}(\\.\\d{1,6})?$',
  description: 'an amount of USD in quotes, such as "8.70"',
})
const text = s.string({ minLength: 1 })

const usualEndpoints = ['chat', 'messages', 'responses', 'ai-sdk', 'moderations', 'search']

const plan = s.object({
  /** Credits per month, USD. */
  monthly: usd,
  /** Part of the credits that premium models may use in seven days, USD. */
  weekly_premium: usd,
  /** A model is premium from either of these prices on, USD per million tokens. */
  premium_from: s.default(s.object({ prompt: s.default(usd, '5'), completion: s.default(usd, '15') }), {}),
  endpoints: s.default(s.array(text), usualEndpoints),
  service_tiers: s.default(s.array(s.enum('auto', 'default', 'flex', 'priority')), ['auto', 'default', 'flex']),
  routing: s.default(s.array(s.enum('auto', 'price', 'throughput', 'latency')), ['auto', 'price']),
})
type PlanEntry = Infer<typeof plan>

/** docs/money.md#cost: credits of three times the monthly price, and 10, 12 and 15 percent of them per week. */
const usual = {
  lite: { monthly: '87', weekly_premium: '8.7' },
  pro: { monthly: '237', weekly_premium: '28.44' },
  max: { monthly: '537', weekly_premium: '80.55' },
}

/** The `plans` section of `gateway.yaml`. */
export const plansEntry = s.default(
  s.object({ lite: s.optional(plan), pro: s.optional(plan), max: s.optional(plan) }),
  usual,
)

/** Throws a ConfigError for an endpoint that does not exist. */
export function checkPlans(
  { value, source }: ConfigFile<{ readonly plans: Infer<typeof plansEntry> }>,
  endpoints: readonly Pick<Endpoint, 'name'>[],
): void {
  const known = [...new Set([...endpoints.map(({ name }) => name), ...usualEndpoints])]
  for (const [plan, entry] of Object.entries(value.plans)) {
    for (const [index, name] of (entry?.endpoints ?? []).entries()) {
      if (known.includes(name)) continue
      throw source.error(unknownName('endpoint', name, known), ['plans', plan, 'endpoints', index])
    }
  }
}

/** Only the plans that are declared. */
export function linkPlans(entries: Infer<typeof plansEntry>): Plans {
  const plans = new Map<PlanName, Plan>()
  for (const name of planNames) {
    const entry = entries[name]
    if (entry) plans.set(name, linkPlan(entry))
  }
  return plans
}

const linkPlan = (entry: PlanEntry): Plan => ({
  monthly: parseMoney(entry.monthly),
  weeklyPremium: parseMoney(entry.weekly_premium),
  premiumFrom: {
    prompt: parseDecimal(entry.premium_from.prompt, TOKEN_PLACES),
    completion: parseDecimal(entry.premium_from.completion, TOKEN_PLACES),
  },
  endpoints: new Set(entry.endpoints),
  serviceTiers: new Set(entry.service_tiers),
  routing: new Set(entry.routing),
})
