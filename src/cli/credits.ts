/** `gatewayctl credits` and `plans`. */
import type { Command } from 'commander'
import type { DeclaredPlan, GivenDiscount, ShownDiscount, ShownEntry, ShownPlan } from '../admin/commands/billing.ts'
import { adder } from './adder.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

const organization = '--org <org>: id or name of the organization'

interface Balance {
  readonly balance: string
  readonly held: string
  readonly used: string
}

const showBalance = ({ balance, held, used }: Balance): string =>
  facts([
    ['balance USD', balance],
    ['held USD', held],
    ['used USD', used],
  ])

const showEntries = (entries: readonly ShownEntry[]): string =>
  table(
    ['at', 'kind', 'amount USD', 'reference', 'note'],
    entries.map(({ at, kind, amount, reference, note }) => [at.slice(0, 19), kind, amount, reference, note]),
  )

const showDiscounts = (discounts: readonly ShownDiscount[]): string =>
  table(
    ['organization', 'provider', 'model', 'percent'],
    discounts.map(one => [one.organization ?? 'all', one.provider ?? 'all', one.model ?? 'all', one.percent]),
  )

function showPlan(state: ShownPlan): string {
  if (state.plan === 'none') return 'no plan\n'
  return facts([
    ['plan', state.plan],
    ['used USD', `${state.used} of ${state.monthly}, renews ${state.renewsAt.slice(0, 10)}`],
    [
      'premium USD',
      `${state.premiumUsed} of ${state.weeklyPremium}, resets ${state.premiumResetsAt ?? 'not yet started'}`,
    ],
    ['overflow', state.overflow ? 'to credits' : 'off'],
  ])
}

const showPlans = (declared: readonly DeclaredPlan[]): string =>
  table(
    ['plan', 'USD a month', 'premium USD a week', 'premium from input USD/M', 'or output USD/M'],
    declared.map(one => [one.plan, one.monthly, one.weeklyPremium, one.premiumFromInput, one.premiumFromOutput]),
  )

/** Adds `credits` and its subcommands. */
export function addCredits(program: Command, open: Open): void {
  const add = adder(program.command('credits').description('payments of organizations'), 'credits', open)
  const payment = {
    organization,
    amount: '--amount <usd>: amount in USD: 12.50',
    reference: '--reference <text>: reference of the payment; one reference is booked once',
    note: '--note <text>: description',
  }
  const one = (entry: ShownEntry) => showEntries([entry])
  add('add', 'book a payment', payment, one)
  add('refund', 'refund a payment', payment, one)
  add('show', 'show the balance, its held part, and the amount used', { organization }, showBalance)
  add('entries', 'list payments and refunds', { organization }, showEntries)
  add(
    'discount',
    'set a discount; the most specific one applies',
    {
      percent: '--percent <percent>: percentage: 12.5; 0 removes the discount',
      organization: '--org <org>: for this organization (default: for all)',
      provider: '--provider <id>: only at this provider',
      model: '--model <id>: only of this model',
    },
    (made: GivenDiscount) => showDiscounts([made]),
  )
  const applying = '--org <org>: only those that apply to this organization'
  add('discounts', 'list discounts', { organization: applying }, showDiscounts)
}

/** Adds `plans list`, `set`, `show` and `reset`. */
export function addPlans(program: Command, open: Open): void {
  const add = adder(program.command('plans').description('coding plans'), 'plans', open)
  const overflow = '--overflow <on|off>: whether credits pay for what exceeds the plan'
  const choices = { organization, plan: '--plan <plan>: which', overflow }
  add('list', 'list the plans of the configuration', {}, showPlans)
  add('set', 'put an organization on a plan, or end it', choices, showPlan)
  add('show', 'show the used part of a plan', { organization }, showPlan)
  add('reset', 'restart the week of premium models', { organization }, showPlan)
}
