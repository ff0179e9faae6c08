/** What was consumed, and whether the books agree. */
import { errors } from '../../core/error.ts'
import { formatMoney } from '../../core/money.ts'
import type { UsageQuery, UsageTotals } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30

const date = s.string({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'a date such as 2026-01-31' })

/** The start of a UTC day, Unix milliseconds. Throws for days that no calendar has. */
function day(text: string, argument: string): number {
  const at = Date.parse(`${text}T00:00:00Z`)
  if (Number.isNaN(at) || isoDay(at) !== text) throw errors.invalidParameters(`"${text}" is not a date.`, argument)
  return at
}
const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Both days count in full. */
function period(from: string | undefined, to: string | undefined): { first: number; last: number } {
  const last = day(to ?? isoDay(Date.now()), 'to')
  const first = from === undefined ? last - (DEFAULT_DAYS - 1) * DAY_MS : day(from, 'from')
  if (first > last) {
    throw errors.invalidParameters(`"from" (${isoDay(first)}) is later than "to" (${isoDay(last)}).`, 'from')
  }
  return { first, last }
}

/**
 * Ids of the keys that are asked about, or undefined for all. A project is asked about by its keys, because its name
 * is known to the accounts only. Throws for a project or a key that does not exist: no usage would look like none.
 */
async function keysOf(
  { project, key }: { project?: string | undefined; key?: string | undefined },
  { accounts }: AdminContext,
): Promise<string[] | undefined> {
  if (project === undefined && key === undefined) return undefined
  const ids = (await accounts.listKeys(project)).map(({ id }) => id)
  if (key === undefined) return ids
  if (!ids.includes(key)) {
    throw errors.notFound(`There is no key "${key}"${project === undefined ? '' : ` in project "${project}"`}.`)
  }
  return [key]
}

const nothing: UsageTotals = {
  requests: 0,
  errors: 0,
  cached: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  cost: 0n,
}

const add = (a: UsageTotals, b: UsageTotals): UsageTotals => ({
  requests: a.requests + b.requests,
  errors: a.errors + b.errors,
  cached: a.cached + b.cached,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  cost: a.cost + b.cost,
})

/** The sums of all with one id, the costliest first. */
function merge(groups: readonly (UsageTotals & { id: string })[]): (UsageTotals & { id: string })[] {
  const sums = new Map<string, UsageTotals>()
  for (const group of groups) sums.set(group.id, add(sums.get(group.id) ?? nothing, group))
  return [...sums]
    .map(([id, totals]) => ({ id, ...totals }))
    .sort((a, b) => Number(b.cost - a.cost) || b.requests - a.requests)
}

const shown = <T extends UsageTotals>(totals: T) => ({ ...totals, cost: formatMoney(totals.cost) })

export const usageCommands: CommandTable = {
  /** → `{from, to, totals, groupBy?, groups?}`; days are UTC and inclusive, cost is in USD. */
  usage: command(
    s.object({
      project: s.optional(s.string({ minLength: 1, description: 'the id or the name of a project' })),
      key: s.optional(s.string({ minLength: 1, description: 'the id of a key' })),
      from: s.optional(date),
      to: s.optional(date),
      groupBy: s.optional(s.enum('provider', 'model', 'app', 'api_key')),
    }),
    async ({ project, key, from, to, groupBy }, context) => {
      const { first, last } = period(from, to)
      const span = { from: first, to: last + DAY_MS }
      const keys = await keysOf({ project, key }, context)
      const queries: UsageQuery[] = keys ? keys.map(keyId => ({ ...span, keyId })) : [span]
      const totals = await Promise.all(queries.map(query => context.usage.totals(query)))
      const result = { from: isoDay(first), to: isoDay(last), totals: shown(totals.reduce(add, nothing)) }
      if (!groupBy) return result
      const groups = await Promise.all(queries.map(query => context.usage.breakdown(query, groupBy)))
      return { ...result, groupBy, groups: merge(groups.flat()).map(shown) }
    },
  ),
  /** → `{differences}`: one sentence for each; none when request rows, ledger and aggregates agree. */
  'usage.check': command(s.object({}), async (_, { usage }) => ({ differences: await usage.check() })),
}
