/** Credits and coding plans. */
import { formatDecimal, formatMoney, parseDecimal } from '../../core/money.ts'
import { planNames } from '../../core/plan.ts'
import type { DiscountRecord, LedgerEntry, PlanState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { amount, isOn, organization, paid, partArguments, partOf } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const reference = s.string({
  pattern: '^[A-Za-z0-9._:/-]{1,200}$',
  description: 'what names the payment, of letters, digits and ". _ : / -"',
})
const note = s.string({ maxLength: 500 })
const offerName = s.string({ minLength: 1, maxLength: 200 })
const percent = s.string({ pattern: '^\\d{1,3}(\\.\\d{1,4})?$', description: 'a percentage such as "12.5"' })

/** A percent is 10^4 millionths, so four decimals of a percentage are millionths. */
const PERCENT_PLACES = 4
const WHOLE = 1_000_000

/** A ledger entry with its amount as a decimal string in USD. */
export type ShownEntry = ReturnType<typeof shownEntry>
const shownEntry = ({ amount, ...rest }: LedgerEntry) => ({ ...rest, amount: formatMoney(amount) })

/** A discount in percent, as a decimal string. */
export type ShownDiscount = ReturnType<typeof shownDiscount>
/** → with `unknown`: names of models and providers that none of the organizations concerned has yet. */
export type GivenDiscount = ShownDiscount & { readonly unknown: readonly string[] }
const shownDiscount = ({ millionths, ...rest }: DiscountRecord) => ({
  ...rest,
  percent: formatDecimal(BigInt(millionths), PERCENT_PLACES),
})

const booking = s.object({ organization, amount, reference: s.optional(reference), note: s.optional(note) })

/** `credits.*`: payments, refunds and discounts. */
export const creditCommands: CommandTable = {
  /** Books a reference once, however often the command runs → the ledger entry. */
  'credits.add': command(booking, async (args, { credits }, actor) =>
    shownEntry(await credits.add({ ...args, amount: paid(args.amount) }, actor)),
  ),
  /** Refunds a payment → the ledger entry, with a negative amount. */
  'credits.refund': command(booking, async (args, { credits }, actor) =>
    shownEntry(await credits.refund({ ...args, amount: paid(args.amount) }, actor)),
  ),
  /** → `{balance, held, used}` in USD. */
  'credits.show': command(s.object({ organization }), async ({ organization }, { credits }) => {
    const { balance, held, used } = await credits.show(organization)
    return { balance: formatMoney(balance), held: formatMoney(held), used: formatMoney(used) }
  }),
  /** → payments and refunds, newest first. */
  'credits.entries': command(
    s.object({ organization, ...partArguments }),
    async ({ organization, ...part }, { credits }) =>
      (await credits.entries(organization, ...partOf(part))).map(shownEntry),
  ),
  /** Zero percent removes a discount → the discount. Without an organization it applies to all. */
  'credits.discount': command(
    s.object({
      organization: s.optional(organization),
      provider: s.optional(offerName),
      model: s.optional(offerName),
      percent,
    }),
    async ({ percent, ...given }, { credits, policies }, actor): Promise<GivenDiscount> => {
      const millionths = Number(parseDecimal(percent, PERCENT_PLACES))
      if (millionths > WHOLE) throw errors.invalidParameters('Argument "percent" must be at most 100.', 'percent')
      const { organization = null, provider = null, model = null } = given
      const record = await credits.discount({ organization, provider, model, millionths }, actor)
      const names = { models: model === null ? [] : [model], providers: provider === null ? [] : [provider] }
      return { ...shownDiscount(record), unknown: await policies.unknown(given.organization, names) }
    },
  ),
  'credits.discounts': command(
    s.object({ organization: s.optional(organization), ...partArguments }),
    async ({ organization, ...part }, { credits }) =>
      (await credits.discounts(organization, ...partOf(part))).map(shownDiscount),
  ),
}

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
export type ShownPlan = ReturnType<typeof shownPlan>
function shownPlan(state: PlanState | null, context: AdminContext) {
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
    shownPlan(await context.plans.show(organization), context),
  ),
  /** `none` ends the plan. With overflow, credits pay for what exceeds the plan. */
  'plans.set': command(
    s.object({
      organization,
      plan: s.optional(s.enum(...planNames, 'none')),
      overflow: s.optional(s.enum('on', 'off')),
    }),
    async ({ organization, plan, overflow }, context, actor) => {
      const changes = { plan: plan === 'none' ? null : plan, overflow: isOn(overflow) }
      return shownPlan(await context.plans.set(organization, changes, actor), context)
    },
  ),
  /** Restarts the week of premium models. */
  'plans.reset': command(s.object({ organization }), async ({ organization }, context, actor) =>
    shownPlan(await context.plans.resetWeek(organization, actor), context),
  ),
}
