/** `GET /v1/key`: the remaining limits of a key (docs/contract.md#key-status). */

import { json } from '../codecs/json.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { keyUsage } from '../core/key-usage.ts'
import { formatMoney, type Money } from '../core/money.ts'
import type { Plans } from '../core/plan.ts'
import type { KeyStatus, PlanState } from '../core/ports.ts'
import { value } from '../core/reply.ts'
import { errors } from '../lib/error.ts'
import type { OwnLimits } from '../limits/kinds.ts'

const CENT = 10_000_000n

/** Only for regular keys. Amounts are USD as decimal strings. */
export const key: Endpoint = {
  name: 'key',
  method: 'GET',
  path: '/v1/key',
  chain: 'local',
  codec: json,
  bodyLimit: 0,
  async serve(ex, { keys }) {
    const { snapshot } = ex
    const { principal } = ex.caller
    if (!principal) throw errors.noCredentials()
    if (principal.kind !== 'key') throw errors.forbidden('Only regular gateway API keys may read their status.')
    const status = await keys.status(principal)
    const { usage, total, recurring } = keyUsage(status)
    return value({
      data: {
        label: principal.keyName,
        usage: formatMoney(usage),
        limit: total ? formatMoney(total.limit) : null,
        ...(recurring && periodOf(recurring)),
        ...planOf(status.plan, snapshot.plans),
        ...(principal.rates && { rateLimits: principal.rates.map(rateOf) }),
      },
    })
  },
}

const rateOf = ({ of, name, limits }: OwnLimits) => ({ of, name, ...limits })

/** The recurring limit, with the start of its next period. */
const periodOf = ({ limit, period, spent, resetsAt }: KeyStatus['budgets'][number]) => ({
  periodLimit: formatMoney(limit),
  periodUsage: formatMoney(spent),
  period,
  periodResetsAt: iso(resetsAt),
})

function planOf(state: PlanState | undefined, plans: Plans): object {
  if (!state) {
    return {
      devPlan: 'none',
      devPlanCreditsUsed: '0',
      devPlanCreditsLimit: '0',
      devPlanCreditsRemaining: '0',
      devPlanPremiumWeeklyLimit: '0',
      devPlanPremiumCreditsUsed: '0',
      devPlanPremiumWeekResetsAt: null,
    }
  }
  const { monthly, weeklyPremium } = plans.get(state.plan) ?? { monthly: 0n, weeklyPremium: 0n }
  const remaining = monthly > state.used ? monthly - state.used : 0n
  return {
    devPlan: state.plan,
    devPlanCreditsUsed: formatMoney(state.used),
    devPlanCreditsLimit: formatMoney(monthly),
    devPlanCreditsRemaining: cents(remaining),
    devPlanPremiumWeeklyLimit: cents(weeklyPremium),
    devPlanPremiumCreditsUsed: cents(state.premiumUsed),
    devPlanPremiumWeekResetsAt: iso(state.premiumResetsAt),
  }
}

const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

/** Truncated to two decimals: the remainder is never overstated (docs/contract.md#key-status). */
function cents(amount: Money): string {
  const digits = (amount / CENT).toString().padStart(3, '0')
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`
}
