/** `gatewayctl credits` and `plans`. */
import { type Command, Option } from 'commander'
import type { GivenDiscount, ShownDiscount, ShownEntry } from '../admin/commands/credits.ts'
import type { DeclaredPlan, ShownPlan } from '../admin/commands/plans.ts'
import { planNames } from '../core/plan.ts'
import { everyPart } from './pages.ts'
import { type Open, warnUnknown } from './session.ts'
import { facts, table } from './table.ts'

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
    discounts.map(({ organization, provider, model, percent }) => [
      organization ?? 'all',
      provider ?? 'all',
      model ?? 'all',
      percent,
    ]),
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

/** Adds `credits` and its subcommands. */
export function addCredits(program: Command, open: Open): void {
  const credits = program.command('credits').description('payments of organizations')

  for (const [name, description] of [
    ['add', 'book a payment'],
    ['refund', 'refund a payment'],
  ] as const) {
    credits
      .command(name)
      .description(description)
      .requiredOption('--org <org>', 'id or name of the organization')
      .requiredOption('--amount <usd>', 'amount in USD: 12.50')
      .option('--reference <text>', 'reference of the payment; one reference is booked once')
      .option('--note <text>', 'description')
      .action(async ({ org: organization, ...options }, command) => {
        const { admin, print } = open(command)
        const entry = await admin.command<ShownEntry>(`credits.${name}`, { organization, ...options })
        print(entry, one => showEntries([one]))
      })
  }

  credits
    .command('show')
    .description('show the balance, its held part, and the amount used')
    .requiredOption('--org <org>', 'id or name of the organization')
    .action(async ({ org: organization }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<Balance>('credits.show', { organization }), showBalance)
    })

  credits
    .command('entries')
    .description('list payments and refunds')
    .requiredOption('--org <org>', 'id or name of the organization')
    .action(async ({ org: organization }, command) => {
      const { admin, print } = open(command)
      const entries = await everyPart(part => admin.command<ShownEntry[]>('credits.entries', { organization, ...part }))
      print(entries, showEntries)
    })

  credits
    .command('discount')
    .description('set a discount; the most specific one applies')
    .requiredOption('--percent <percent>', 'percentage: 12.5; 0 removes the discount')
    .option('--org <org>', 'for this organization (default: for all)')
    .option('--provider <id>', 'only at this provider')
    .option('--model <id>', 'only of this model')
    .action(async ({ org: organization, ...options }, command) => {
      const session = open(command)
      const { admin, print } = session
      const made = await admin.command<GivenDiscount>('credits.discount', { organization, ...options })
      print(made, one => showDiscounts([one]))
      warnUnknown(made, session)
    })

  credits
    .command('discounts')
    .description('list discounts')
    .option('--org <org>', 'only those that apply to this organization')
    .action(async ({ org: organization }, command) => {
      const { admin, print } = open(command)
      const all = await everyPart(part =>
        admin.command<ShownDiscount[]>('credits.discounts', { organization, ...part }),
      )
      print(all, showDiscounts)
    })
}

/** Adds `plans list`, `show`, `set` and `reset`. */
export function addPlans(program: Command, open: Open): void {
  const plans = program.command('plans').description('coding plans')

  plans
    .command('list')
    .description('list the plans of the configuration')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      print(await admin.command<DeclaredPlan[]>('plans.list'), declared =>
        table(
          ['plan', 'USD a month', 'premium USD a week', 'premium from input USD/M', 'or output USD/M'],
          declared.map(one => [one.plan, one.monthly, one.weeklyPremium, one.premiumFromInput, one.premiumFromOutput]),
        ),
      )
    })

  plans
    .command('set')
    .description('put an organization on a plan, or end it')
    .requiredOption('--org <org>', 'id or name of the organization')
    .addOption(new Option('--plan <plan>', 'which').choices([...planNames, 'none']))
    .addOption(
      new Option('--overflow <on|off>', 'whether credits pay for what exceeds the plan').choices(['on', 'off']),
    )
    .action(async ({ org: organization, ...options }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownPlan>('plans.set', { organization, ...options }), showPlan)
    })

  for (const [name, description] of [
    ['show', 'show the used part of a plan'],
    ['reset', 'restart the week of premium models'],
  ] as const) {
    plans
      .command(name)
      .description(description)
      .requiredOption('--org <org>', 'id or name of the organization')
      .action(async ({ org: organization }, command) => {
        const { admin, print } = open(command)
        print(await admin.command<ShownPlan>(`plans.${name}`, { organization }), showPlan)
      })
  }
}
