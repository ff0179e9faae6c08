/** API keys, and sessions of the operator. */
import { formatMoney, parseMoney } from '../../core/money.ts'
import type { Actor, KeyRecord, NewKey } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  amount,
  durationOf,
  keyId,
  lifetime,
  limitArguments,
  limitChange,
  limitChanges,
  limitInput,
  member,
  name,
  names,
  ofProject,
  pageArguments,
  pageOf,
  project,
  rateArguments,
  rateChange,
  showLimits,
  shownLimit,
  showRates,
} from '../arguments.ts'
import { type CommandTable, command, day, facts, option, rows, shell } from '../command.ts'
import type { AdminContext } from '../context.ts'

const lifetimeOrNever = s.string({
  pattern: '^(never|[1-9]\\d{0,4}[mhdw])$',
  description: 'a time such as 12h or 30d, or "never"',
})

const expiry = (after: string): number => Date.now() + durationOf(after)

/** A key record with amounts as decimal strings in USD. */
export type ShownKey = ReturnType<typeof shownKey>
const shownKey = <T extends KeyRecord>({ limits, spent, ...rest }: T) => ({
  ...rest,
  limits: limits.map(shownLimit),
  spent: formatMoney(spent),
})

/** Creates a key, and the rule of its models. */
async function made(input: NewKey, models: string[] | undefined, { accounts, policies }: AdminContext, actor: Actor) {
  const { key, ...record } = await accounts.createKey(input, actor)
  let unknown: readonly string[] | undefined
  // A run that broke off may have left a key without its rule.
  if (models && (await policies.rules.list({ key: record.id }, { limit: 1 })).length === 0) {
    const rule = await policies.rules.add({ key: record.id, type: 'allow_models', value: { models } }, actor)
    unknown = await policies.unknown(rule.organization, rule.value)
  }
  return { key, ...shownKey(record), unknown }
}

const showNew = (key: ShownKey & { readonly key: string }): string =>
  `${facts([
    ['key', key.key],
    ['id', key.id],
    ['name', key.name],
    ['project', key.project],
    ['expires', key.expiresAt ?? 'never'],
    ...(key.limits.length > 0 ? [['limits', showLimits(key.limits)] as const] : []),
    ...(key.rateLimits ? [['rates', showRates(key.rateLimits)] as const] : []),
  ])}The key is shown only this once.\n`

const showKeys = rows<ShownKey>(
  'id, name, project, key, status, spent USD, limits USD, rates, created, expires',
  ({ id, name, project, preview, status, spent, limits, rateLimits, createdAt, expiresAt }) => {
    const days = [day(createdAt), expiresAt === null ? 'never' : day(expiresAt)]
    return [id, name, project, preview, status, spent, showLimits(limits), showRates(rateLimits), ...days]
  },
  'no keys; create one with `gatewayctl keys create --project default`\n',
)

const id = shell('<id>: id of the key', keyId)
const purpose = option('--name <name>: purpose of the key', name)

/** `keys.*`. */
export const keyCommands: CommandTable = {
  /** → the record, `key`: the secret, which is never shown again, and `unknown`: names of no model yet. */
  'keys.create': command(
    s.object({
      project,
      name: purpose,
      expires: option(
        '--expires <time>: lifetime of the key: 12h, 30d, 52w (default: unlimited; 15m for a session)',
        lifetime,
      ),
      kind: option('--kind <kind>: kind of key', s.enum('key', 'publishable', 'session')),
      createdBy: option('--created-by <member>: address of the member who owns the key', member),
      models: option('--models <list>: the only models that it may call, such as "acme/*"; adds a rule', names),
      ...limitArguments,
      ...rateArguments,
    }),
    async ({ project, kind, createdBy, models, ...args }, context, actor) => {
      const { name = `key of ${new Date().toISOString().slice(0, 10)}` } = args
      const expiresAt = args.expires === undefined ? undefined : expiry(args.expires)
      const input = { project, name, kind, expiresAt, createdBy, limit: limitInput(args), rates: rateChange(args) }
      return made(input, models, context, actor)
    },
    'create a key and show its secret, once',
    showNew,
  ),
  /** → records, each with `spent`, its all-time spend in USD. */
  'keys.list': command(
    s.object({ project: ofProject, ...pageArguments }),
    async ({ project, ...page }, { accounts }) => (await accounts.listKeys(project, pageOf(page))).map(shownKey),
    'list keys; secrets are never shown',
    showKeys,
  ),
  /** Omitted fields stay unchanged → the record. */
  'keys.update': command(
    s.object({
      id,
      name: purpose,
      expires: option('--expires <time>: lifetime of the key from now on: 12h, 30d, 52w, or never', lifetimeOrNever),
      ...limitChanges,
      ...rateArguments,
    }),
    async ({ id, name, expires, ...args }, { accounts }, actor) => {
      const expiresAt = expires === undefined ? undefined : expires === 'never' ? null : expiry(expires)
      const [limit, rates] = [limitChange(args), rateChange(args)]
      if (name === undefined && expiresAt === undefined && !limit && !rates)
        throw errors.badRequest('Name at least one field to change.')
      return shownKey(await accounts.updateKey(id, { name, expiresAt, limit, rates }, actor))
    },
    'change a key; omitted options stay unchanged',
    showKeys,
  ),
  'keys.revoke': command(
    s.object({ id }),
    async ({ id }, { accounts }, actor) => shownKey(await accounts.revokeKey(id, actor)),
    'revoke a key at once',
    ({ id, name }) => `revoked ${id} (${name})\n`,
  ),
  /** → as `keys.create`, with the same name and project. */
  'keys.roll': command(
    s.object({ id }),
    async ({ id }, { accounts }, actor) => {
      const { key, ...record } = await accounts.rollKey(id, actor)
      return { key, ...shownKey(record) }
    },
    'revoke a key and create its successor, whose secret is shown once',
    showNew,
  ),
  'keys.show': command(
    s.object({ id }),
    async ({ id }, { accounts }) => shownKey(await accounts.showKey(id)),
    'show a key with its limits; its secret is never shown',
    showKeys,
  ),
  /**
   * Takes a key over that another gateway has made, by the SHA-256 of its secret → the record, with `found` where the key
   * was there and stays as it is. `models`: the only ones that it may call.
   */
  'keys.import': command(
    s.object({
      project,
      name: purpose,
      hash: s.string({ pattern: '^[0-9a-f]{64}$', description: 'a SHA-256 in hexadecimal digits' }),
      preview: s.optional(s.string({ maxLength: 20 })),
      spent: amount,
      expiresAt: s.optional(s.integer({ minimum: 0, description: 'Unix milliseconds' })),
      revoked: s.optional(s.boolean()),
      createdBy: s.optional(member),
      models: s.optional(names),
      ...limitArguments,
      ...rateArguments,
    }),
    async ({ project, name = 'imported', hash, expiresAt, createdBy, models, ...args }, context, actor) => {
      const past = { preview: args.preview ?? '', spent: parseMoney(args.spent), revoked: args.revoked === true }
      const given = {
        project,
        name,
        hash,
        expiresAt,
        createdBy,
        past,
        limit: limitInput(args),
        rates: rateChange(args),
      }
      const { key: _, ...record } = await made(given, models, context, actor)
      return record
    },
  ),
}

const sessionId = s.string({ minLength: 1, description: 'the id of a session, as sessions.begin answers it' })

/** `sessions.*`: the operator's own sessions, by which `gatewayctl` calls the public listener. */
export const sessionCommands: CommandTable = {
  /** → `{id, key, expiresAt}`: `key` is the secret, which is never shown again. */
  'sessions.begin': command(s.object({ project }), ({ project }, { operatorSessions }, actor) =>
    operatorSessions.begin(project, actor),
  ),
  'sessions.end': command(s.object({ id: sessionId }), async ({ id }, { operatorSessions }) => {
    await operatorSessions.end(id)
    return { id }
  }),
}
