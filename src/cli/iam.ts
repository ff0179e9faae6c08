/** `gatewayctl iam`. */
import { type Command, Option } from 'commander'
import type { AddedRule } from '../admin/commands/iam.ts'
import { ruleTypes } from '../core/policy.ts'
import type { RuleRecord } from '../core/ports.ts'
import { listOf } from './lists.ts'
import { every } from './pages.ts'
import { type Open, warnUnknown } from './session.ts'
import { table } from './table.ts'

function shownValue({ value }: RuleRecord): string {
  const { models, providers, ipCidrs, pricing, maxInputPrice, maxOutputPrice } = value
  const lists = [models, providers, ipCidrs].flatMap(list => (list ? [list.join(', ')] : []))
  const limits = [
    pricing,
    maxInputPrice && `input up to ${maxInputPrice} USD/M`,
    maxOutputPrice && `output up to ${maxOutputPrice} USD/M`,
  ]
  return [...lists, ...limits.filter(Boolean)].join(', ')
}

const showRules = (rules: readonly RuleRecord[]): string =>
  rules.length === 0
    ? 'no rules: everything is allowed\n'
    : table(
        ['id', 'organization', 'member', 'key', 'type', 'value', 'status', 'created'],
        rules.map(rule => [
          rule.id,
          rule.organization,
          rule.member,
          rule.key,
          rule.type,
          shownValue(rule),
          rule.status,
          rule.createdAt.slice(0, 10),
        ]),
      )

/** Adds `iam create`, `list`, `update` and `remove`. */
export function addIam(program: Command, open: Open): void {
  const iam = program.command('iam').description('access rules of organizations, members and keys')

  iam
    .command('create')
    .alias('add')
    .description('add a rule; allowing rules of one type form a union, all types must pass, and denials win')
    .option('--org <organization>', 'for all keys of this organization')
    .option('--member <address>', 'for all keys that this member of the organization created')
    .option('--key <id>', 'for this API key')
    .addOption(new Option('--type <type>', 'kind of rule').choices(ruleTypes).makeOptionMandatory())
    .option('--models <list>', 'models: ids or aliases, or provider/model', listOf)
    .option('--providers <list>', 'providers: ids, "custom", or custom:<id>', listOf)
    .addOption(new Option('--pricing <kind>', 'free or paid models').choices(['free', 'paid']))
    .addOption(new Option('--pricing-type <kind>').choices(['free', 'paid']).hideHelp())
    .option('--max-input-price <usd>', 'USD per million tokens')
    .option('--max-output-price <usd>', 'USD per million tokens')
    .option('--ip-cidrs <list>', 'addresses and ranges: 192.0.2.0/24,2001:db8::/32', listOf)
    .action(async ({ org, pricing, pricingType, ...rest }, command: Command) => {
      if (org === undefined && rest.key === undefined) command.error('error: give --org or --key')
      const session = open(command)
      const { admin, print } = session
      const args = { organization: org, pricing: pricing ?? pricingType, ...rest }
      const rule = await admin.command<AddedRule>('iam.add', args)
      print(rule, ({ id, type }) => `added rule ${id} (${type})\n`)
      warnUnknown(rule, session)
    })

  iam
    .command('list')
    .description('list rules')
    .option('--org <organization>', 'only those of this organization, its members and keys')
    .option('--member <address>', 'only those of this member of the organization')
    .option('--key <id>', 'only those of this API key')
    .action(async ({ org, member, key }, command) => {
      const { admin, print } = open(command)
      print(await every<RuleRecord>(admin, 'iam.list', { organization: org, member, key }), showRules)
    })

  iam
    .command('update')
    .description('activate or deactivate a rule')
    .argument('<id>', 'id of the rule')
    .addOption(
      new Option('--status <status>', 'whether the rule applies').choices(['active', 'inactive']).makeOptionMandatory(),
    )
    .option('--org <organization>', 'only if it is a rule of this organization')
    .action(async (id, { status, org }, command) => {
      const { admin, print } = open(command)
      const args = { id, status, organization: org }
      print(await admin.command<RuleRecord>('iam.update', args), rule => `rule ${rule.id} is ${rule.status}\n`)
    })

  iam
    .command('remove')
    .description('remove a rule')
    .argument('<id>', 'id of the rule')
    .option('--org <organization>', 'only if it is a rule of this organization')
    .action(async (id, { org }, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<RuleRecord>('iam.remove', { id, organization: org })
      print(removed, rule => `removed rule ${rule.id} (${rule.type})\n`)
    })
}
