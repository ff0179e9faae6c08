/** Keys of organizations for providers, access rules, and compliance requirements. */
import { type Compliance, ruleTypes } from '../../core/policy.ts'
import type { ProviderKeyRecord, RuleRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  amount,
  amountOrNone,
  keyId,
  limitArguments,
  limitChange,
  limitInput,
  member,
  organization,
  pageArguments,
  pageOf,
  provider,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const id = s.string({ minLength: 1, description: 'an id, as the list shows it' })
/** Names of models or providers; unknown ones are reported, not refused. */
const names = s.array(s.string({ minLength: 1, maxLength: 256 }), { description: 'a list of names' })

const label = s.string({ minLength: 1, maxLength: 100, description: 'a label of 1 to 100 characters' })
const secret = s.string({ minLength: 1, maxLength: 64 * 1024, description: 'the secret that the provider gave' })

/** A record without the secret, with limits as `shownLimit` shows them. */
export type ShownProviderKey = ReturnType<typeof shown>
const shown = ({ limits, ...rest }: ProviderKeyRecord) => ({ ...rest, limits: limits.map(shownLimit) })

/** → with `unknown`: names of models that the organization does not have yet. */
export type ChangedProviderKey = ShownProviderKey & { readonly unknown: readonly string[] }
async function changed(record: ProviderKeyRecord, { policies }: AdminContext): Promise<ChangedProviderKey> {
  const unknown = await policies.unknown(record.organization, { models: record.models ?? [] })
  return { ...shown(record), unknown }
}

/** `provider-keys.*`. */
export const providerKeyCommands: CommandTable = {
  /** → the record, without the secret. */
  'provider-keys.add': command(
    s.object({
      organization,
      provider,
      label: s.optional(label),
      secret,
      models: s.optional(names),
      limit: s.optional(amount),
      ...limitArguments,
    }),
    async ({ organization, provider, label = 'default', secret, models, ...limits }, context, actor) => {
      const input = { organization, provider, label, secret, models: some(models), limit: limitInput(limits) }
      return changed(await context.policies.providerKeys.add(input, actor), context)
    },
  ),
  'provider-keys.list': command(
    s.object({ organization: s.optional(organization), ...pageArguments }),
    async ({ organization, ...page }, { policies }) =>
      (await policies.providerKeys.list(organization, pageOf(page))).map(shown),
  ),
  /** Omitted fields stay unchanged → the record. */
  'provider-keys.update': command(
    s.object({
      id,
      organization: s.optional(organization),
      label: s.optional(label),
      models: s.optional(s.either(s.enum('all'), names)),
      limit: s.optional(amountOrNone),
      ...limitArguments,
    }),
    async ({ id, organization, label, models, ...limits }, context, actor) => {
      const limit = limitChange(limits)
      if (label === undefined && models === undefined && !limit)
        throw errors.badRequest('Name at least one field to change.')
      const changes = { label, models: typeof models === 'string' ? null : some(models), limit }
      return changed(await context.policies.providerKeys.update(id, organization, changes, actor), context)
    },
  ),
  'provider-keys.remove': command(
    s.object({ id, organization: s.optional(organization) }),
    async ({ id, organization }, { policies }, actor) =>
      shown(await policies.providerKeys.remove(id, organization, actor)),
  ),
  /** Seals every kind of stored value anew → `{reencrypted, unreadable, keyVersion, kinds}`. May be repeated after an interruption. */
  'provider-keys.reencrypt': command(
    s.object({ newKey: s.optional(s.boolean()) }),
    ({ newKey = false }, { policies }, actor) => policies.masterKeys.reencrypt(newKey, actor),
  ),
}

/** A key for no model at all would be a mistake in the list. */
function some(models: string[] | undefined): string[] | undefined {
  if (models?.length !== 0) return models
  throw errors.invalidParameters('Argument "models" must name at least one model.', 'models')
}

const price = s.string({ description: 'a price in USD per million tokens, such as "2.50"' })

/** → with `unknown`: names of models and providers that the organization does not have yet. */
export type AddedRule = RuleRecord & { readonly unknown: readonly string[] }

/** `iam.*`: access rules. */
export const iamCommands: CommandTable = {
  'iam.add': command(
    s.object({
      organization: s.optional(organization),
      member: s.optional(member),
      key: s.optional(keyId),
      type: s.enum(...ruleTypes),
      models: s.optional(names),
      providers: s.optional(names),
      pricing: s.optional(s.enum('free', 'paid')),
      maxInputPrice: s.optional(price),
      maxOutputPrice: s.optional(price),
      ipCidrs: s.optional(names),
    }),
    async ({ organization, member, key, type, ...value }, { policies }, actor): Promise<AddedRule> => {
      const record = await policies.rules.add({ organization, member, key, type, value }, actor)
      return { ...record, unknown: await policies.unknown(record.organization, record.value) }
    },
  ),
  'iam.list': command(
    s.object({
      organization: s.optional(organization),
      member: s.optional(member),
      key: s.optional(keyId),
      ...pageArguments,
    }),
    ({ after, limit, ...scope }, { policies }) => policies.rules.list(scope, pageOf({ after, limit })),
  ),
  /** An inactive rule is stored but not applied. */
  'iam.update': command(
    s.object({ id, organization: s.optional(organization), status: s.enum('active', 'inactive') }),
    ({ id, organization, status }, { policies }, actor) => policies.rules.setStatus(id, status, organization, actor),
  ),
  'iam.remove': command(
    s.object({ id, organization: s.optional(organization) }),
    ({ id, organization }, { policies }, actor) => policies.rules.remove(id, organization, actor),
  ),
}

/** `organization` as named in the command; `policy` is null without requirements. */
export interface ShownCompliance {
  readonly organization: string
  readonly policy: Compliance | null
}
/** → with `unknown`: names of models and providers that the organization does not have yet. */
export type SetCompliance = ShownCompliance & { readonly unknown: readonly string[] }

/** `compliance.*`: what organizations demand of providers. */
export const complianceCommands: CommandTable = {
  'compliance.show': command(
    s.object({ organization }),
    async ({ organization }, { policies }): Promise<ShownCompliance> => ({
      organization,
      policy: await policies.compliance.show(organization),
    }),
  ),
  /** Omitted requirements stay unchanged; `soc2: "off"` removes the requirement. */
  'compliance.set': command(
    s.object({
      organization,
      noTraining: s.optional(s.boolean()),
      noLogging: s.optional(s.boolean()),
      gdpr: s.optional(s.boolean()),
      soc2: s.optional(s.enum('1', '2', 'off')),
      iso27001: s.optional(s.boolean()),
      soc2OrIso27001: s.optional(s.boolean()),
      countries: s.optional(names),
      allowedProviders: s.optional(names),
      blockedProviders: s.optional(names),
      allowedModels: s.optional(names),
      blockedModels: s.optional(names),
    }),
    async ({ organization, soc2, ...rest }, { policies }, actor): Promise<SetCompliance> => {
      const changes = { ...given(rest), ...(soc2 && { soc2: soc2 === 'off' ? undefined : soc2 }) }
      const policy = await policies.compliance.change(organization, changes, actor)
      const { allowedModels, blockedModels, allowedProviders, blockedProviders } = policy
      const names = {
        models: [...allowedModels, ...blockedModels],
        providers: [...allowedProviders, ...blockedProviders],
      }
      return { organization, policy, unknown: await policies.unknown(organization, names) }
    },
  ),
  'compliance.clear': command(
    s.object({ organization }),
    async ({ organization }, { policies }, actor): Promise<ShownCompliance> => {
      await policies.compliance.clear(organization, actor)
      return { organization, policy: null }
    },
  ),
}

/** Without undefined members. */
const given = <T extends object>(changes: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
