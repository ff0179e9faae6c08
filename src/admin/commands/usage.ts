/** Usage, and the consistency of its records. */

import { formatMoney } from '../../core/money.ts'
import { type UsageQuery, type UsageTotals, usageGroups } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { keyId, organization, partArguments, partOf, project } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30

const date = s.string({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'a date such as 2026-01-31' })

/** Start of a UTC day in Unix milliseconds. Throws a GatewayError for an impossible date. */
function day(text: string, argument: string): number {
  const at = Date.parse(`${text}T00:00:00Z`)
  if (Number.isNaN(at) || isoDay(at) !== text) throw errors.invalidParameters(`"${text}" is not a date.`, argument)
  return at
}
const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Both days are inclusive. */
function period(from: string | undefined, to: string | undefined): { first: number; last: number } {
  const last = day(to ?? isoDay(Date.now()), 'to')
  const first = from === undefined ? last - (DEFAULT_DAYS - 1) * DAY_MS : day(from, 'from')
  if (first > last) {
    throw errors.invalidParameters(`"from" (${isoDay(first)}) is later than "to" (${isoDay(last)}).`, 'from')
  }
  return { first, last }
}

interface Scope {
  organization?: string | undefined
  project?: string | undefined
  key?: string | undefined
}

/** Throws for an unknown organization, project or key: an empty answer would look like no usage. */
async function scopeOf({ organization, project, key }: Scope, { names }: AdminContext): Promise<Partial<UsageQuery>> {
  return {
    ...(organization !== undefined && { orgId: await names.organization(organization) }),
    ...(project !== undefined && { projectId: await names.project(project) }),
    ...(key !== undefined && { keyId: await names.key(key) }),
  }
}

const shown = <T extends UsageTotals>(totals: T) => ({
  ...totals,
  cost: formatMoney(totals.cost),
  creditsCost: formatMoney(totals.creditsCost),
  byokCost: formatMoney(totals.byokCost),
  storageCost: formatMoney(totals.storageCost),
})

/** `usage` and `usage.check`. */
export const usageCommands: CommandTable = {
  /** → `{from, to, totals, groupBy?, groups?}`; days are UTC and inclusive, cost is in USD. `groups` are paged. */
  usage: command(
    s.object({
      organization: s.optional(organization),
      project: s.optional(project),
      key: s.optional(keyId),
      from: s.optional(date),
      to: s.optional(date),
      groupBy: s.optional(s.enum(...usageGroups)),
      ...partArguments,
    }),
    async ({ from, to, groupBy, limit, offset, ...scope }, context) => {
      const { first, last } = period(from, to)
      const query = { ...(await scopeOf(scope, context)), from: first, to: last + DAY_MS }
      const result = { from: isoDay(first), to: isoDay(last), totals: shown(await context.usage.totals(query)) }
      if (!groupBy) return result
      const groups = await context.usage.breakdown(query, groupBy, ...partOf({ limit, offset }))
      return { ...result, groupBy, groups: groups.map(shown) }
    },
  ),
  /** → `{differences}`: a sentence each; empty when request rows, ledger and aggregates agree. */
  'usage.check': command(s.object({}), async (_, { usage }) => ({ differences: await usage.check() })),
}
