/** Access rules, and compliance requirements. */
import { type Compliance, ruleTypes } from '../../core/policy.ts'
import type { RuleRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { keyId, member, names, organization, pageArguments, pageOf } from '../arguments.ts'
import { type CommandTable, command, day, facts, list, option, rows, shell } from '../command.ts'

const id = shell('<id>: id of the rule', s.string({ minLength: 1, description: 'an id, as the list shows it' }))
const ownRule = option('--org <organization>: only if it is a rule of this organization', organization)
const price = s.string({ description: 'a price in USD per million tokens, such as "2.50"' })

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

const showRules = rows<RuleRecord>(
  'id, organization, member, key, type, value, status, created',
  rule => {
    const { id, organization, member, key, type, status, createdAt } = rule
    return [id, organization, member, key, type, shownValue(rule), status, day(createdAt)]
  },
  'no rules: everything is allowed\n',
)

/** `iam.*`: access rules. */
export const iamCommands: CommandTable = {
  /** → with `unknown`: names of models and providers that the organization does not have yet. */
  'iam.add': command(
    s.object({
      organization: option('--org <organization>: for all keys of this organization', organization),
      member: option('--member <address>: for all keys that this member of the organization created', member),
      key: option('--key <id>: for this API key', keyId),
      type: shell('--type <type>: kind of rule', s.enum(...ruleTypes)),
      models: option('--models <list>: models: ids or aliases, or provider/model; * stands for any text', names),
      providers: option('--providers <list>: providers: ids, "custom", or custom:<id>', names),
      pricing: option('--pricing <kind>: free or paid models', s.enum('free', 'paid')),
      maxInputPrice: option('--max-input-price <usd>: USD per million tokens', price),
      maxOutputPrice: option('--max-output-price <usd>: USD per million tokens', price),
      ipCidrs: option('--ip-cidrs <list>: addresses and ranges: 192.0.2.0/24,2001:db8::/32', names),
    }),
    async ({ organization, member, key, type, ...value }, { policies }, actor) => {
      const record = await policies.rules.add({ organization, member, key, type, value }, actor)
      return { ...record, unknown: await policies.unknown(record.organization, record.value) }
    },
    'add a rule; allowing rules of one type form a union, all types must pass, and denials win',
    ({ id, type }) => `added rule ${id} (${type})\n`,
  ),
  'iam.list': command(
    s.object({
      organization: option('--org <organization>: only those of this organization, its members and keys', organization),
      member: option('--member <address>: only those of this member of the organization', member),
      key: option('--key <id>: only those of this API key', keyId),
      ...pageArguments,
    }),
    ({ after, limit, ...scope }, { policies }) => policies.rules.list(scope, pageOf({ after, limit })),
    'list rules',
    showRules,
  ),
  /** An inactive rule is stored but not applied. */
  'iam.update': command(
    s.object({
      id,
      status: shell('--status <status>: whether the rule applies', s.enum('active', 'inactive')),
      organization: ownRule,
    }),
    ({ id, organization, status }, { policies }, actor) => policies.rules.setStatus(id, status, organization, actor),
    'activate or deactivate a rule',
    rule => `rule ${rule.id} is ${rule.status}\n`,
  ),
  'iam.remove': command(
    s.object({ id, organization: ownRule }),
    ({ id, organization }, { policies }, actor) => policies.rules.remove(id, organization, actor),
    'remove a rule',
    rule => `removed rule ${rule.id} (${rule.type})\n`,
  ),
}

const organizationArgument = {
  organization: shell('--org <organization>: id or name of the organization', organization),
}
const demand = (text: string) => option(text, s.boolean())
const namesFor = (text: string) => option(text, names)

/** `organization` as named in the command; `policy` is null without requirements. */
interface ShownCompliance {
  readonly organization: string
  readonly policy: Compliance | null
}

function showPolicy({ organization, policy }: ShownCompliance): string {
  if (!policy) return `${organization} has no requirements for providers\n`
  const on = (demanded: boolean) => (demanded ? 'on' : 'off')
  return facts([
    ['no training', on(policy.noTraining)],
    ['zero data retention', on(policy.noLogging)],
    ['GDPR', on(policy.gdpr)],
    ['SOC 2', policy.soc2 === undefined ? 'off' : `type ${policy.soc2}`],
    ['ISO 27001', on(policy.iso27001)],
    ['SOC 2 type 2 or ISO 27001', on(policy.soc2OrIso27001)],
    ['countries', list(policy.countries)],
    ['allowed providers', list(policy.allowedProviders)],
    ['blocked providers', list(policy.blockedProviders)],
    ['allowed models', list(policy.allowedModels)],
    ['blocked models', list(policy.blockedModels)],
  ])
}

/** `compliance.*`: what organizations demand of providers. */
export const complianceCommands: CommandTable = {
  'compliance.show': command(
    s.object(organizationArgument),
    async ({ organization }, { policies }): Promise<ShownCompliance> => ({
      organization,
      policy: await policies.compliance.show(organization),
    }),
    'show the requirements of an organization',
    showPolicy,
  ),
  /** Omitted requirements stay unchanged; `soc2: "off"` removes the requirement. */
  'compliance.set': command(
    s.object({
      ...organizationArgument,
      noTraining: demand('--block-training <on|off>: providers do not train on API data'),
      noLogging: demand(
        '--zdr <on|off>: zero data retention: providers keep no prompts, and no answer is replayed from the cache',
      ),
      gdpr: demand('--gdpr <on|off>: providers comply with GDPR'),
      soc2: option('--soc2 <type>: providers have a SOC 2 report of this type', s.enum('1', '2', 'off')),
      iso27001: demand('--iso27001 <on|off>: providers have an ISO 27001 certificate'),
      soc2OrIso27001: demand(
        '--soc2-or-iso27001 <on|off>: providers have a SOC 2 type 2 report or an ISO 27001 certificate',
      ),
      countries: namesFor('--countries <list>: providers have their headquarters in these countries'),
      allowedProviders: namesFor('--allow-providers <list>: only these providers'),
      blockedProviders: namesFor('--block-providers <list>: never these providers'),
      allowedModels: namesFor('--allow-models <list>: only these models'),
      blockedModels: namesFor('--block-models <list>: never these models'),
    }),
    async ({ organization, soc2, ...rest }, { policies }, actor) => {
      const changes = { ...given(rest), ...(soc2 && { soc2: soc2 === 'off' ? undefined : soc2 }) }
      const policy = await policies.compliance.change(organization, changes, actor)
      const { allowedModels, blockedModels, allowedProviders, blockedProviders } = policy
      const names = {
        models: [...allowedModels, ...blockedModels],
        providers: [...allowedProviders, ...blockedProviders],
      }
      return { organization, policy, unknown: await policies.unknown(organization, names) }
    },
    'change requirements; a provider that does not state a fact fails the requirement; lists may be empty: ""',
    showPolicy,
  ),
  'compliance.clear': command(
    s.object(organizationArgument),
    async ({ organization }, { policies }, actor): Promise<ShownCompliance> => {
      await policies.compliance.clear(organization, actor)
      return { organization, policy: null }
    },
    'remove all requirements',
    showPolicy,
  ),
}

/** Without undefined members. */
const given = <T extends object>(changes: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
