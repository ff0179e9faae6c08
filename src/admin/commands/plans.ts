/** Coding plans: declared ones, and those of organizations. */
import { formatDecimal, formatMoney } from '../../core/money.ts'
import { planNames } from '../../core/plan.ts'
import type { PlanState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { organization } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

/** Pico-USD per token with 6 decimals is USD per million tokens. */
const TOKEN_PLACES = 6

/** A plan of the configuration; amounts in USD, prices in USD per million tokens. */
export type DeclaredPlan = ReturnType<typeof declared>[number]
const declared = (context: AdminContext) =>
  [...context.snapshot().plans].map(([plan, { monthly, weeklyPremium, premiumFrom }]) => ({
    plan,
    monthly: formatMoney(monthly),
    weeklyPremium: formatMoney(weeklyPremium),
    premiumFromInput: formatDecimal(premiumFrom.prompt, TOKEN_PLACES),
    premiumFromOutput: formatDecimal(premiumFrom.completion, TOKEN_PLACES),
  }))

/** An organization's plan with what was used of it; `{ plan: 'none' }` without one. */
export type ShownPlan = ReturnType<typeof shown>
function shown(state: PlanState | null, context: AdminContext) {
  if (!state) return { plan: 'none' as const }
  const plan = context.snapshot().plans.get(state.plan)
  return {
    plan: state.plan,
    since: new Date(state.since).toISOString(),
    overflow: state.overflow,
    monthly: formatMoney(plan?.monthly ?? 0n),
    used: formatMoney(state.used),
    renewsAt: new Date(state.renewsAt).toISOString(),
    weeklyPremium: formatMoney(plan?.weeklyPremium ?? 0n),
    premiumUsed: formatMoney(state.premiumUsed),
    premiumResetsAt: state.premiumResetsAt === undefined ? null : new Date(state.premiumResetsAt).toISOString(),
  }
}

/** `plans.*`: coding plans. */
export const planCommands: CommandTable = {
  /** → the plans that the configuration declares. */
  'plans.list': command(s.object({}), (_, context) => declared(context)),
  'plans.show': command(s.object({ organization }), async ({ organization }, context) =>
    shown(await context.plans.show(organization), context),
  ),
  /** `none` ends the plan. With overflow, credits pay for what exceeds the plan. */
  'plans.set': command(
    s.object({
      organization,
      plan: s.optional(s.enum(...planNames, 'none')),
      overflow: s.optional(s.enum('on', 'off')),
    }),
    async ({ organization, plan, overflow }, context, actor) => {
      const changes = {
        plan: plan === 'none' ? null : plan,
        overflow: overflow === undefined ? undefined : overflow === 'on',
      }
      return shown(await context.plans.set(organization, changes, actor), context)
    },
  ),
  /** Restarts the week of premium models. */
  'plans.reset': command(s.object({ organization }), async ({ organization }, context, actor) =>
    shown(await context.plans.resetWeek(organization, actor), context),
  ),
}
