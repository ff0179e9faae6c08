/** Keys of organizations for providers. No command returns a secret. */

import type { ProviderKeyRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  amount,
  amountOrNone,
  limitArguments,
  limitChange,
  limitInput,
  organization,
  pageArguments,
  pageOf,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'
import { id, names, provider } from './policy-args.ts'

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
