/** Credits and coding plans. */
import { formatDecimal, formatMoney, parseDecimal } from '../../core/money.ts'
import { planNames } from '../../core/plan.ts'
import type { DiscountRecord, LedgerEntry, PlanState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { amount, isOn, organization, paid, partArguments, partOf } from '../arguments.ts'
import { type CommandTable, command, facts, option, rows, shell } from '../command.ts'
import type { AdminContext } from '../context.ts'

const reference = s.string({
  pattern: '^[A-Za-z0-9._:/-]{1,200}$',
  description: 'what names the payment, of letters, digits and ". _ : / -"',
})
const note = s.string({ maxLength: 500 })
const offerName = s.string({ pattern: '^[^*]+$', maxLength: 200, description: 'one name, without "*"' })
const percent = s.string({ pattern: '^\\d{1,3}(\\.\\d{1,4})?$', description: 'a percentage such as "12.5"' })

/** A percent is 10^4 millionths, so four decimals of a percentage are millionths. */
const PERCENT_PLACES = 4
const WHOLE = 1_000_000

/** A ledger entry with its amount as a decimal string in USD. */
type ShownEntry = ReturnType<typeof shownEntry>
const shownEntry = ({ amount, ...rest }: LedgerEntry) => ({ ...rest, amount: formatMoney(amount) })

/** A discount in percent, as a decimal string. */
type ShownDiscount = ReturnType<typeof shownDiscount>
const shownDiscount = ({ millionths, ...rest }: DiscountRecord) => ({
  ...rest,
  percent: formatDecimal(BigInt(millionths), PERCENT_PLACES),
})

const booking = s.object({
  organization,
  amount: shell('--amount <usd>: amount in USD: 12.50', amount),
  reference: option('--reference <text>: reference of the payment; one reference is booked once', reference),
  note: option('--note <text>: description', note),
})

const showEntries = rows<ShownEntry>(
  'at, kind, amount USD, reference, note',
  ({ at, kind, amount, reference, note }) => [at.slice(0, 19), kind, amount, reference, note],
)
const showDiscounts = rows<ShownDiscount>('organization, provider, model, percent', one => [
  ...[one.organization, one.provider, one.model].map(name => name ?? 'all'),
  one.percent,
])

/** `credits.*`: payments, refunds and discounts. */
export const creditCommands: CommandTable = {
  /** Books a reference once, however often the command runs → the ledger entry. */
  'credits.add': command(
    booking,
    async (args, { credits }, actor) => shownEntry(await credits.add({ ...args, amount: paid(args.amount) }, actor)),
    'book a payment',
    showEntries,
  ),
  /** → the ledger entry, with a negative amount. */
  'credits.refund': command(
    booking,
    async (args, { credits }, actor) => shownEntry(await credits.refund({ ...args, amount: paid(args.amount) }, actor)),
    'refund a payment',
    showEntries,
  ),
  /** → `{balance, held, used}` in USD. */
  'credits.show': command(
    s.object({ organization }),
    async ({ organization }, { credits }) => {
      const { balance, held, used } = await credits.show(organization)
      return { balance: formatMoney(balance), held: formatMoney(held), used: formatMoney(used) }
    },
    'show the balance, its held part, and the amount used',
    ({ balance, held, used }) =>
      facts([
        ['balance USD', balance],
        ['held USD', held],
        ['used USD', used],
      ]),
  ),
  /** → payments and refunds, newest first. */
  'credits.entries': command(
    s.object({ organization, ...partArguments }),
    async ({ organization, ...part }, { credits }) =>
      (await credits.entries(organization, ...partOf(part))).map(shownEntry),
    'list payments and refunds',
    showEntries,
  ),
  /** → the discount, with `unknown`: names that none of the organizations concerned has yet. Without an organization it applies to all. */
  'credits.discount': command(
    s.object({
      percent: shell('--percent <percent>: percentage: 12.5; 0 removes the discount', percent),
      organization: option('--org <org>: for this organization (default: for all)', organization),
      provider: option('--provider <id>: only at this provider', offerName),
      model: option('--model <id>: only of this model', offerName),
    }),
    async ({ percent, ...given }, { credits, policies }, actor) => {
      const millionths = Number(parseDecimal(percent, PERCENT_PLACES))
      if (millionths > WHOLE) throw errors.invalidParameters('Argument "percent" must be at most 100.', 'percent')
      const { organization = null, provider = null, model = null } = given
      const record = await credits.discount({ organization, provider, model, millionths }, actor)
      const names = { models: model === null ? [] : [model], providers: provider === null ? [] : [provider] }
      return { ...shownDiscount(record), unknown: await policies.unknown(given.organization, names) }
    },
    'set a discount; the most specific one applies',
    showDiscounts,
  ),
  'credits.discounts': command(
    s.object({
      organization: option('--org <org>: only those that apply to this organization', organization),
      ...partArguments,
    }),
    async ({ organization, ...part }, { credits }) =>
      (await credits.discounts(organization, ...partOf(part))).map(shownDiscount),
    'list discounts',
    showDiscounts,
  ),
}

/** Pico-USD per token with 6 decimals is USD per million tokens. */
const TOKEN_PLACES = 6

/** A plan of the configuration; amounts in USD, prices in USD per million tokens. */
type DeclaredPlan = ReturnType<typeof declared>[number]
const declared = (context: AdminContext) =>
  [...context.snapshot().plans].map(([plan, { monthly, weeklyPremium, premiumFrom }]) => ({
    plan,
    monthly: formatMoney(monthly),
    weeklyPremium: formatMoney(weeklyPremium),
    premiumFromInput: formatDecimal(premiumFrom.prompt, TOKEN_PLACES),
    premiumFromOutput: formatDecimal(premiumFrom.completion, TOKEN_PLACES),
  }))

/** An organization's plan with what was used of it; `{ plan: 'none' }` without one. */
type ShownPlan = ReturnType<typeof shownPlan>
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

const showPlans = rows<DeclaredPlan>(
  'plan, USD a month, premium USD a week, premium from input USD/M, or output USD/M',
  one => [one.plan, one.monthly, one.weeklyPremium, one.premiumFromInput, one.premiumFromOutput],
)

function showPlan(state: ShownPlan): string {
  if (state.plan === 'none') return 'no plan\n'
  const { premiumUsed, weeklyPremium, premiumResetsAt } = state
  return facts([
    ['plan', state.plan],
    ['used USD', `${state.used} of ${state.monthly}, renews ${state.renewsAt.slice(0, 10)}`],
    ['premium USD', `${premiumUsed} of ${weeklyPremium}, resets ${premiumResetsAt ?? 'a week after first use'}`],
    ['overflow', state.overflow ? 'to credits' : 'off'],
  ])
}

/** `plans.*`: coding plans. */
export const planCommands: CommandTable = {
  /** → the plans that the configuration declares. */
  'plans.list': command(
    s.object({}),
    (_, context) => declared(context),
    'list the plans of the configuration',
    showPlans,
  ),
  /** `none` ends the plan. With overflow, credits pay for what exceeds the plan. */
  'plans.set': command(
    s.object({
      organization,
      plan: option('--plan <plan>: which', s.enum(...planNames, 'none')),
      overflow: option('--overflow <on|off>: whether credits pay for what exceeds the plan', s.enum('on', 'off')),
    }),
    async ({ organization, plan, overflow }, context, actor) => {
      const changes = { plan: plan === 'none' ? null : plan, overflow: isOn(overflow) }
      return shownPlan(await context.plans.set(organization, changes, actor), context)
    },
    'put an organization on a plan, or end it',
    showPlan,
  ),
  'plans.show': command(
    s.object({ organization }),
    async ({ organization }, context) => shownPlan(await context.plans.show(organization), context),
    'show the used part of a plan',
    showPlan,
  ),
  'plans.reset': command(
    s.object({ organization }),
    async ({ organization }, context, actor) => shownPlan(await context.plans.resetWeek(organization, actor), context),
    'restart the week of premium models',
    showPlan,
  ),
}
