/** `gatewayctl provider-keys`, `iam` and `compliance`. */
import { type Command, Option } from 'commander'
import type {
  AddedRule,
  ChangedProviderKey,
  SetCompliance,
  ShownCompliance,
  ShownProviderKey,
} from '../admin/commands/access.ts'
import type { Reencryption, RuleRecord, SealedKind } from '../core/ports.ts'
import { adder } from './adder.ts'
import { limitTexts, showLimits } from './limits.ts'
import { readSecret, refuseSecret } from './secrets.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

const ORGANIZATION = '--org <organization>: id or name of the organization'

const showKeys = (keys: readonly ShownProviderKey[]): string =>
  keys.length === 0
    ? 'no provider keys; add one with `gatewayctl provider-keys create --org O --provider ID < secret`\n'
    : table(
        ['id', 'organization', 'provider', 'label', 'fingerprint', 'models', 'limits USD', 'master key', 'created'],
        keys.map(({ id, organization, provider, label, fingerprint, models, limits, keyVersion, createdAt }) => {
          const scope = [models?.join(', ') ?? 'all', showLimits(limits)]
          return [id, organization, provider, label, fingerprint, ...scope, keyVersion, createdAt.slice(0, 10)]
        }),
      )

const NAMES: Readonly<Record<SealedKind, string>> = {
  provider_keys: 'provider keys',
  responses: 'stored responses',
  realtime_secrets: 'realtime client secrets',
  jobs: 'jobs',
}

const showReencryption = ({ reencrypted, unreadable, keyVersion, kinds }: Reencryption): string =>
  table(
    ['sealed values', 'encrypted anew', 'unreadable'],
    Object.entries(kinds).map(([kind, counts]) => [NAMES[kind as SealedKind], counts.reencrypted, counts.unreadable]),
  ) +
  facts([
    ['encrypted anew', reencrypted],
    ['master key', keyVersion],
    ['unreadable', unreadable.join(', ')],
  ])

/** Adds `provider-keys`; secrets come by standard input alone. */
export function addProviderKeys(program: Command, open: Open): void {
  const parent = program.command('provider-keys').description("organizations' own keys for providers")
  const add = adder(parent, 'provider-keys', open)
  const label = '--label <label>: label of the key in the routing of answers'
  const named = {
    id: '<id>: id of the key',
    organization: '--org <organization>: only if it is a key of this organization',
  }
  const create = add<ChangedProviderKey>(
    'create',
    'add a key for a provider; its secret is read from standard input and never shown',
    {
      organization: ORGANIZATION,
      provider: '--provider <id>: id of the provider',
      label,
      models: '--models <list>: only for these models: ids, aliases, or provider/model',
      ...limitTexts(),
    },
    key => `kept ${key.id} (${key.label}) for ${key.provider}, fingerprint ${key.fingerprint}\n`,
    {
      async call({ admin, io }, args) {
        const secret = await readSecret(io, 'provider-keys create …')
        return admin.command('provider-keys.add', { ...args, secret })
      },
    },
  )
  for (const flag of ['--secret', '--key']) refuseSecret(create, flag, 'write the secret to standard input')
  add(
    'update',
    'change the models and limits of a key; omitted options stay unchanged',
    {
      ...named,
      label,
      models: '--models <list>: only for these models, or all',
      ...limitTexts('amount in USD from now on, or none to remove the limit'),
    },
    (key: ChangedProviderKey) => showKeys([key]),
  )
  add(
    'list',
    'list keys by their fingerprints; secrets are never shown',
    { organization: '--org <organization>: only those of this organization' },
    showKeys,
  )
  const removed = (key: ShownProviderKey) => `removed ${key.id} (${key.label}) for ${key.provider}\n`
  add('remove', 'forget a key', named, removed)
  add(
    'reencrypt',
    'encrypt everything that is sealed under the newest master key; may be repeated after an interruption',
    { newKey: '--new-key: create a new master key first (when master keys are in the file beside the database)' },
    showReencryption,
  )
}

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
        rules.map(rule => {
          const { id, organization, member, key, type, status, createdAt } = rule
          return [id, organization, member, key, type, shownValue(rule), status, createdAt.slice(0, 10)]
        }),
      )

/** Adds `iam create`, `list`, `update` and `remove`. */
export function addIam(program: Command, open: Open): void {
  const parent = program.command('iam').description('access rules of organizations, members and keys')
  const add = adder(parent, 'iam', open)
  const id = '<id>: id of the rule'
  const organization = '--org <organization>: only if it is a rule of this organization'
  add<AddedRule>(
    'create',
    'add a rule; allowing rules of one type form a union, all types must pass, and denials win',
    {
      organization: '--org <organization>: for all keys of this organization',
      member: '--member <address>: for all keys that this member of the organization created',
      key: '--key <id>: for this API key',
      type: '--type <type>: kind of rule',
      models: '--models <list>: models: ids or aliases, or provider/model',
      providers: '--providers <list>: providers: ids, "custom", or custom:<id>',
      pricing: '--pricing <kind>: free or paid models',
      maxInputPrice: '--max-input-price <usd>: USD per million tokens',
      maxOutputPrice: '--max-output-price <usd>: USD per million tokens',
      ipCidrs: '--ip-cidrs <list>: addresses and ranges: 192.0.2.0/24,2001:db8::/32',
    },
    ({ id, type }) => `added rule ${id} (${type})\n`,
    {
      call({ admin }, { pricing, ...args }, command) {
        if (args.organization === undefined && args.key === undefined) command.error('error: give --org or --key')
        return admin.command('iam.add', { ...args, pricing: pricing ?? command.opts().pricingType })
      },
    },
  ).addOption(new Option('--pricing-type <kind>').choices(['free', 'paid']).hideHelp())
  add(
    'list',
    'list rules',
    {
      organization: '--org <organization>: only those of this organization, its members and keys',
      member: '--member <address>: only those of this member of the organization',
      key: '--key <id>: only those of this API key',
    },
    showRules,
  )
  const status = '--status <status>: whether the rule applies'
  const updated = (rule: RuleRecord) => `rule ${rule.id} is ${rule.status}\n`
  add('update', 'activate or deactivate a rule', { id, status, organization }, updated)
  const removed = (rule: RuleRecord) => `removed rule ${rule.id} (${rule.type})\n`
  add('remove', 'remove a rule', { id, organization }, removed)
}

function showPolicy({ organization, policy }: ShownCompliance): string {
  if (!policy) return `${organization} has no requirements for providers\n`
  const list = (entries: readonly string[]) => entries.join(', ')
  const on = (demanded: boolean) => (demanded ? 'on' : 'off')
  return facts([
    ['no training', on(policy.noTraining)],
    ['no logging', on(policy.noLogging)],
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

/** Adds `compliance show`, `set` and `clear`. */
export function addCompliance(program: Command, open: Open): void {
  const parent = program.command('compliance').description('requirements of organizations for providers')
  const add = adder(parent, 'compliance', open)
  add('show', 'show the requirements of an organization', { organization: ORGANIZATION }, showPolicy)
  add<SetCompliance>(
    'set',
    'change requirements; a provider that does not state a fact fails the requirement; lists may be empty: ""',
    {
      organization: ORGANIZATION,
      noTraining: '--block-training <on|off>: providers do not train on API data',
      noLogging:
        '--zdr <on|off>: zero data retention: providers keep no prompts, and no answer is replayed from the cache',
      gdpr: '--gdpr <on|off>: providers comply with GDPR',
      soc2: '--soc2 <type>: providers have a SOC 2 report of this type',
      iso27001: '--iso27001 <on|off>: providers have an ISO 27001 certificate',
      soc2OrIso27001: '--soc2-or-iso27001 <on|off>: providers have a SOC 2 type 2 report or an ISO 27001 certificate',
      countries: '--countries <list>: providers have their headquarters in these countries',
      allowedProviders: '--allow-providers <list>: only these providers',
      blockedProviders: '--block-providers <list>: never these providers',
      allowedModels: '--allow-models <list>: only these models',
      blockedModels: '--block-models <list>: never these models',
    },
    showPolicy,
  )
  add('clear', 'remove all requirements', { organization: ORGANIZATION }, showPolicy)
}
