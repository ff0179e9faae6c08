/** Usage, and the audit log. */
import { formatMoney } from '../../core/money.ts'
import { type AuditEntry, type UsageGroup, type UsageTotals, usageGroups } from '../../core/ports.ts'
import { type Schema, s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { DAY_MS } from '../../lib/period.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { keyId, organization, partArguments, partOf, project, scopeOf } from '../arguments.ts'
import { type CommandTable, command, facts, option, rows, table } from '../command.ts'

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

const usageGroup = s.either(
  s.enum(...usageGroups),
  s.string({ pattern: '^tag:.{1,64}$', description: 'tag:KEY' }),
) as Schema<UsageGroup>

const shownTotals = <T extends UsageTotals>(totals: T) => ({
  ...totals,
  cost: formatMoney(totals.cost),
  creditsCost: formatMoney(totals.creditsCost),
  byokCost: formatMoney(totals.byokCost),
  storageCost: formatMoney(totals.storageCost),
})

type Totals = ReturnType<typeof shownTotals<UsageTotals>>
interface Usage {
  readonly from: string
  readonly to: string
  readonly totals: Totals
  readonly groupBy?: string
  readonly groups?: readonly (Totals & { readonly id: string; readonly name?: string })[]
}

function showUsage({ from, to, totals, groupBy, groups }: Usage): string {
  const summary = facts([
    ['days', `${from} to ${to} (UTC)`],
    ['requests', `${totals.requests} (${totals.errors} failed, ${totals.cached} from cache)`],
    ['input tokens', `${totals.inputTokens} (${totals.cachedTokens} cached)`],
    ['output tokens', `${totals.outputTokens} (${totals.reasoningTokens} reasoning)`],
    ['cost USD', `${totals.cost} (${totals.creditsCost} of credits, ${totals.byokCost} through own provider keys)`],
    ['storage USD', totals.storageCost],
  ])
  if (!groups) return summary
  const isNamed = groups.some(({ name }) => name !== undefined)
  const rows = groups.map(({ id, name, requests, errors, inputTokens, outputTokens, cost }) => {
    return [id, ...(isNamed ? [name] : []), requests, errors, inputTokens, outputTokens, cost]
  })
  return `${summary}\n${table([groupBy ?? '', ...(isNamed ? ['name'] : []), 'requests', 'failed', 'input', 'output', 'cost USD'], rows)}`
}

/** `usage` and `usage.check`. */
export const usageCommands: CommandTable = {
  /** → `{from, to, totals, groupBy?, groups?}`; days are UTC and inclusive, cost is in USD. `groups` are paged. */
  usage: command(
    s.object({
      organization: option('--org <org>: only this organization', organization),
      project: option('--project <project>: only this project', project),
      key: option('--key <id>: only this key', keyId),
      from: option('--from <date>: first day, YYYY-MM-DD (UTC)', date),
      to: option('--to <date>: last day, YYYY-MM-DD (UTC)', date),
      groupBy: option('--group-by <what>: group by', usageGroup),
      ...partArguments,
    }),
    async ({ from, to, groupBy, limit, offset, ...scope }, context): Promise<Usage> => {
      const { first, last } = period(from, to)
      const query = { ...(await scopeOf(scope, context.names)), from: first, to: last + DAY_MS }
      const result = { from: isoDay(first), to: isoDay(last), totals: shownTotals(await context.usage.totals(query)) }
      if (!groupBy) return result
      const groups = await context.usage.breakdown(query, groupBy, ...partOf({ limit, offset }))
      return { ...result, groupBy, groups: groups.map(shownTotals) }
    },
    'show requests, tokens and cost (default: the last 30 days)',
    showUsage,
  ),
  /** → `{differences}`: a sentence each; empty when request rows, ledger and aggregates agree. */
  'usage.check': command(
    s.object({}),
    async (_, { usage }) => ({ differences: await usage.check() }),
    'compare request rows, ledger and totals',
    ({ differences }) => `${differences.join('\n') || 'no differences'}\n`,
  ),
}

const DEFAULT_ENTRIES = 50

type Facts = Readonly<Record<string, unknown>>

const isFacts = (value: unknown): value is Facts => typeof value === 'object' && value !== null

/** Changed fields: `name: a → b`. */
function differences({ before, after }: AuditEntry): string {
  const was: Facts = isFacts(before) ? before : {}
  const became: Facts = isFacts(after) ? after : {}
  const show = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? null))
  return [...new Set([...Object.keys(was), ...Object.keys(became)])]
    .filter(name => show(was[name]) !== show(became[name]))
    .map(name =>
      isFacts(before) ? `${name}: ${show(was[name])} → ${show(became[name])}` : `${name}: ${show(became[name])}`,
    )
    .join(', ')
}

const showEntries = rows<AuditEntry>('id, at, who, what, organization, subject, change', entry => {
  const { id, at, actor, action, organization, subject } = entry
  return [id, at.slice(0, 19), actor, action, organization, subject, differences(entry)]
})

/** `audit`. */
export const auditCommands: CommandTable = {
  /** → `{id, at, actor, action, organization, subject, before, after}`; `beforeId` requests the next page. */
  audit: command(
    s.object({
      organization: option('--org <org>: only changes of this organization', organization),
      limit: option(
        '--limit <count>: number of entries (default: 50)',
        s.integer({ minimum: 1, maximum: 1000, description: 'a count from 1 to 1000' }),
      ),
      beforeId: option(
        '--before <id>: only entries older than this one',
        s.integer({ minimum: 1, description: 'the id of an entry' }),
      ),
    }),
    async ({ organization, limit = DEFAULT_ENTRIES, beforeId }, { audit }) =>
      mapText(await audit.list({ organization, limit, before: beforeId }), maskAll),
    'list changes and who made them, newest first',
    showEntries,
  ),
}
