/** API keys: made, listed, revoked, rolled. */
import { formatMoney } from '../../core/money.ts'
import type { KeyRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

const name = s.string({ minLength: 1, maxLength: 200, description: 'a name of 1 to 200 characters' })
const project = s.string({ minLength: 1, description: 'the id or the name of a project' })
const id = s.string({ minLength: 1, description: 'the id of a key, as keys.list shows it' })
const expires = s.string({ pattern: '^[1-9]\\d{0,4}[mhdw]$', description: 'a time such as 12h, 30d or 52w' })

/** `"30d"` from now, as Unix milliseconds. */
function expiry(after: string): number {
  const unit = after.at(-1) as keyof typeof UNIT_MS
  return Date.now() + Number(after.slice(0, -1)) * UNIT_MS[unit]
}

const withSpend = async (record: KeyRecord, context: AdminContext) => ({
  ...record,
  spent: formatMoney(await context.keys.spent(record.id)),
})

export const keyCommands: CommandTable = {
  /** → the record, and `key`: the secret, which nothing shows again. */
  'keys.create': command(
    s.object({ project, name: s.optional(name), expires: s.optional(expires) }),
    (args, { accounts }) =>
      accounts.createKey({
        project: args.project,
        name: args.name ?? `key of ${new Date().toISOString().slice(0, 10)}`,
        expiresAt: args.expires === undefined ? undefined : expiry(args.expires),
      }),
  ),
  /** → records, each with `spent`, its all-time spend in USD. */
  'keys.list': command(s.object({ project: s.optional(project) }), async (args, context) => {
    const records = await context.accounts.listKeys(args.project)
    return Promise.all(records.map(record => withSpend(record, context)))
  }),
  'keys.revoke': command(s.object({ id }), (args, { accounts }) => accounts.revokeKey(args.id)),
  /** Ends the key and makes another of the same name and project → as `keys.create`. */
  'keys.roll': command(s.object({ id }), (args, { accounts }) => accounts.rollKey(args.id)),
}
