/** Create, list, change, revoke and roll API keys. */

import { formatMoney } from '../../core/money.ts'
import type { KeyRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  amount,
  amountOrNone,
  durationOf,
  keyId,
  lifetime,
  limitArguments,
  limitChange,
  limitInput,
  member,
  name,
  pageArguments,
  pageOf,
  project,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const lifetimeOrNever = s.string({
  pattern: '^(never|[1-9]\\d{0,4}[mhdw])$',
  description: 'a time such as 12h or 30d, or "never"',
})

const expiry = (after: string): number => Date.now() + durationOf(after)

/** A key record with amounts as decimal strings in USD. */
export type ShownKey = ReturnType<typeof shown>
const shown = <T extends KeyRecord>({ limits, spent, ...rest }: T) => ({
  ...rest,
  limits: limits.map(shownLimit),
  spent: formatMoney(spent),
})

/** `keys.*`. */
export const keyCommands: CommandTable = {
  /** → the record, and `key`: the secret, which is never shown again. */
  'keys.create': command(
    s.object({
      project,
      name: s.optional(name),
      expires: s.optional(lifetime),
      kind: s.optional(s.enum('key', 'publishable', 'session')),
      createdBy: s.optional(member),
      limit: s.optional(amount),
      ...limitArguments,
    }),
    async (args, { accounts }, actor) => {
      const input = {
        project: args.project,
        name: args.name ?? `key of ${new Date().toISOString().slice(0, 10)}`,
        kind: args.kind,
        expiresAt: args.expires === undefined ? undefined : expiry(args.expires),
        createdBy: args.createdBy,
        limit: limitInput(args),
      }
      const { key, ...record } = await accounts.createKey(input, actor)
      return { key, ...shown(record) }
    },
  ),
  /** → records, each with `spent`, its all-time spend in USD. */
  'keys.list': command(
    s.object({ project: s.optional(project), ...pageArguments }),
    async ({ project, ...page }, { accounts }) => (await accounts.listKeys(project, pageOf(page))).map(shown),
  ),
  /** Omitted fields stay unchanged → the record. */
  'keys.update': command(
    s.object({
      id: keyId,
      name: s.optional(name),
      expires: s.optional(lifetimeOrNever),
      limit: s.optional(amountOrNone),
      ...limitArguments,
    }),
    async ({ id, name, expires, ...args }, { accounts }, actor) => {
      const expiresAt = expires === undefined ? undefined : expires === 'never' ? null : expiry(expires)
      const limit = limitChange(args)
      if (name === undefined && expiresAt === undefined && !limit)
        throw errors.badRequest('Name at least one field to change.')
      return shown(await accounts.updateKey(id, { name, expiresAt, limit }, actor))
    },
  ),
  'keys.revoke': command(s.object({ id: keyId }), async ({ id }, { accounts }, actor) =>
    shown(await accounts.revokeKey(id, actor)),
  ),
  /** Revokes the key and creates another with the same name and project → as `keys.create`. */
  'keys.roll': command(s.object({ id: keyId }), async ({ id }, { accounts }, actor) => {
    const { key, ...record } = await accounts.rollKey(id, actor)
    return { key, ...shown(record) }
  }),
}
