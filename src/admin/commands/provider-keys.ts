/** Keys of organizations for providers. */
import type { KeyLoad } from '../../core/policy.ts'
import type { ProviderKeyChanges, ProviderKeyRecord, Reencryption, SealedKind } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  limitArguments,
  limitChange,
  limitChanges,
  limitInput,
  names,
  organization,
  pageArguments,
  pageOf,
  provider,
  rateArguments,
  showLimits,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command, day, facts, option, rows, shell, table } from '../command.ts'
import type { AdminContext } from '../context.ts'

const WITH_NODES =
  'give it to all of them in GATEWAY_MASTER_KEY, behind the old one; then put it first, and leave this out'

const named = {
  id: shell('<id>: id of the key', s.string({ minLength: 1, description: 'an id, as the list shows it' })),
  organization: option('--org <organization>: only if it is a key of this organization', organization),
}
const label = option(
  '--label <label>: label of the key in the routing of answers',
  s.string({ minLength: 1, maxLength: 100, description: 'a label of 1 to 100 characters' }),
)
const loadArguments = {
  weight: option(
    '--weight <n>: share of the requests among the keys of the provider; 1 without it, or by none',
    s.either(
      s.number({ exclusiveMinimum: 0, maximum: 1000, description: 'a number above 0, up to 1000' }),
      s.string({ pattern: '^(none|(?!0+(\\.0+)?$)\\d{1,3}(\\.\\d{1,6})?|1000)$', description: 'or "none"' }),
    ),
  ),
  rpm: rateArguments.rpm,
  tpm: rateArguments.tpm,
}
type LoadArguments = { readonly [K in keyof typeof loadArguments]?: string | number | undefined }

/** Undefined where none is named; null for one that is to be removed. */
function loadChange({ weight, rpm, tpm }: LoadArguments): ProviderKeyChanges['load'] {
  const named = Object.entries({ weight, rpm, tpm }).filter(([, value]) => value !== undefined)
  if (named.length === 0) return undefined
  return Object.fromEntries(named.map(([name, value]) => [name, value === 'none' ? null : Number(value) || null]))
}

/** Leaves out what a new key does not set. */
function loadOf(given: LoadArguments): KeyLoad {
  const set = Object.entries(loadChange(given) ?? {}).filter(([, value]) => value !== null)
  return Object.fromEntries(set)
}

const secret = s.string({ minLength: 1, maxLength: 64 * 1024, description: 'the secret that the provider gave' })

/** A record without the secret, with limits as `shownLimit` shows them. */
type ShownProviderKey = ReturnType<typeof shown>
const shown = ({ limits, ...rest }: ProviderKeyRecord) => ({ ...rest, limits: limits.map(shownLimit) })

/** → with `unknown`: names of models that the organization does not have yet. */
async function changed(record: ProviderKeyRecord, { policies }: AdminContext) {
  const unknown = await policies.unknown(record.organization, { models: record.models ?? [] })
  return { ...shown(record), unknown }
}

const showKeys = rows<ShownProviderKey>(
  'id, organization, provider, label, fingerprint, models, limits USD, weight, rpm, tpm, master key, created',
  ({ id, organization, provider, label, fingerprint, models, limits, weight, rpm, tpm, keyVersion, createdAt }) => {
    const scope = [models?.join(', ') ?? 'all', showLimits(limits), weight, rpm, tpm]
    return [id, organization, provider, label, fingerprint, ...scope, keyVersion, day(createdAt)]
  },
  'no provider keys; add one with `gatewayctl provider-keys create --org O --provider ID < secret`\n',
)

const KINDS: Readonly<Record<SealedKind, string>> = {
  provider_keys: 'provider keys',
  responses: 'stored responses',
  contents: 'contents of requests',
  realtime_secrets: 'realtime client secrets',
  jobs: 'jobs',
}

const showReencryption = ({ reencrypted, unreadable, keyVersion, kinds }: Reencryption): string =>
  table(
    ['sealed values', 'encrypted anew', 'unreadable'],
    Object.entries(kinds).map(([kind, counts]) => [KINDS[kind as SealedKind], counts.reencrypted, counts.unreadable]),
  ) +
  facts([
    ['encrypted anew', reencrypted],
    ['master key', keyVersion],
    ['unreadable', unreadable.join(', ')],
  ])

/** `provider-keys.*`. */
export const providerKeyCommands: CommandTable = {
  /** → the record, without the secret. */
  'provider-keys.add': command(
    s.object({
      organization: shell('--org <organization>: id or name of the organization', organization),
      provider,
      label,
      secret,
      models: option('--models <list>: only for these models: ids, aliases, or provider/model', names),
      ...limitArguments,
      ...loadArguments,
    }),
    async (
      { organization, provider, label = 'default', secret, models, weight, rpm, tpm, ...limits },
      context,
      actor,
    ) => {
      const load = loadOf({ weight, rpm, tpm })
      const input = { organization, provider, label, secret, models: some(models), limit: limitInput(limits), load }
      return changed(await context.policies.providerKeys.add(input, actor), context)
    },
    'add a key for a provider; its secret is read from standard input and never shown',
    key => `kept ${key.id} (${key.label}) for ${key.provider}, fingerprint ${key.fingerprint}\n`,
  ),
  /** → the record. */
  'provider-keys.update': command(
    s.object({
      ...named,
      label,
      models: option('--models <list>: only for these models, or all', s.either(s.enum('all'), names)),
      ...limitChanges,
      ...loadArguments,
    }),
    async ({ id, organization, label, models, weight, rpm, tpm, ...limits }, context, actor) => {
      const limit = limitChange(limits)
      const load = loadChange({ weight, rpm, tpm })
      if (label === undefined && models === undefined && !limit && !load)
        throw errors.badRequest('Name at least one field to change.')
      const changes = { label, models: typeof models === 'string' ? null : some(models), limit, load }
      return changed(await context.policies.providerKeys.update(id, organization, changes, actor), context)
    },
    'change the models, share and limits of a key; omitted options stay unchanged',
    showKeys,
  ),
  'provider-keys.list': command(
    s.object({
      organization: option('--org <organization>: only those of this organization', organization),
      ...pageArguments,
    }),
    async ({ organization, ...page }, { policies }) =>
      (await policies.providerKeys.list(organization, pageOf(page))).map(shown),
    'list keys by their fingerprints; secrets are never shown',
    showKeys,
  ),
  'provider-keys.remove': command(
    s.object(named),
    async ({ id, organization }, { policies }, actor) =>
      shown(await policies.providerKeys.remove(id, organization, actor)),
    'forget a key',
    key => `removed ${key.id} (${key.label}) for ${key.provider}\n`,
  ),
  /** Seals every kind of stored value anew. */
  'provider-keys.reencrypt': command(
    s.object({
      newKey: option(
        '--new-key: create a new master key first (when master keys are in the file beside the database)',
        s.boolean(),
      ),
    }),
    async ({ newKey = false }, { policies, nodes }, actor) => {
      const others = newKey ? ((await nodes?.list())?.filter(({ state }) => state === 'live').length ?? 1) - 1 : 0
      if (others > 0) throw errors.invalidField('newKey', `${others} other nodes would lack the key: ${WITH_NODES}`)
      return policies.masterKeys.reencrypt(newKey, actor)
    },
    'encrypt everything that is sealed under the newest master key; may be repeated after an interruption',
    showReencryption,
  ),
}

/** A key for no model at all would be a mistake in the list. */
function some(models: string[] | undefined): string[] | undefined {
  if (models?.length !== 0) return models
  throw errors.invalidParameters('Argument "models" must name at least one model.', 'models')
}
