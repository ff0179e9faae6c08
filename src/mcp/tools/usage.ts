/** `get-usage` and `get-usage-breakdown`: what was used in a period, over time and by what. */
import { type ReportGroup, type ReportStore, type ReportSums, reportGroups } from '../../core/ports.ts'
import { type Infer, s } from '../../core/schema.ts'
import { DAY_MS, HOUR_MS } from '../../lib/period.ts'
import { count, orNull, structured, type Tool, type ToolContext, toolError } from '../tool.ts'
import {
  coverage,
  head,
  headOf,
  MAX_DAYS,
  measures,
  nameOf,
  period,
  type Report,
  reporting,
  reportOf,
  reportsFor,
  row,
  shown,
  sums,
} from './analytics.ts'

const units = { day: { ms: DAY_MS, days: MAX_DAYS }, hour: { ms: HOUR_MS, days: 31 } } as const

const invalid = (tool: string, what: string) => toolError(`Invalid arguments for ${tool}: ${what}`)

const usageInput = s.object({ ...period, granularity: s.default(s.enum('day', 'hour'), 'day') })
const usageOutput = s.object({
  ...head,
  granularity: s.enum('day', 'hour'),
  totals: sums,
  series: s.array(s.object({ date: s.string(), ...measures })),
  mostUsedProvider: orNull(row),
  mostUsedModel: orNull(row),
  mostUsedApp: orNull(row),
  appUsageCoverage: coverage,
})

/** Sums by day or hour in UTC. */
export const getUsage: Tool<Infer<typeof usageInput>> = {
  name: 'get-usage',
  title: 'Usage over time',
  description:
    'Shows requests, tokens and costs of the connected project by day or hour (UTC), with totals and what was used ' +
    'most. Costs nothing.',
  scope: 'usage:read',
  input: usageInput,
  output: usageOutput.json,
  run: (args, context) =>
    reporting(context, async principal => {
      const { granularity } = args
      const report = await reportOf(principal, args, units[granularity].days, context)
      if (typeof report === 'string') return invalid('get-usage', report)
      const reports = reportsFor(context)
      const series = await reports.series(report.query, units[granularity].ms)
      const updatedAt = await reports.updatedAt(report.query)
      const totals = totalOf(series)
      const answer: Infer<typeof usageOutput> = {
        ...headOf(principal, report, updatedAt),
        granularity,
        totals: shown(totals),
        series: series.map(({ at, ...rest }) => ({ date: bucket(at, granularity), ...shown(rest) })),
        mostUsedProvider: await mostUsed('provider', report, reports, context),
        mostUsedModel: await mostUsed('model', report, reports, context),
        mostUsedApp: await mostUsed('app', report, reports, context),
        appUsageCoverage: covered(totals),
      }
      return structured(answer)
    }),
}

const breakdownInput = s.object({
  group_by: s.enum(...reportGroups),
  sort_by: s.default(s.enum('requests', 'cost', 'tokens'), 'requests'),
  ...period,
  limit: s.default(s.integer({ minimum: 1, maximum: 100 }), 10),
  offset: s.default(s.integer({ minimum: 0, maximum: 10_000 }), 0),
})
const breakdownOutput = s.object({
  ...head,
  groupBy: s.enum(...reportGroups),
  sortBy: s.enum('requests', 'cost', 'tokens'),
  rows: s.array(row),
  pagination: s.object({ limit: count, offset: count, hasMore: s.boolean() }),
  coverage,
})

/** Sums by provider, model, app or key, a page at a time. */
export const getUsageBreakdown: Tool<Infer<typeof breakdownInput>> = {
  name: 'get-usage-breakdown',
  title: 'Usage breakdown',
  description:
    'Ranks providers, models, apps or API keys of the connected project by requests, cost or tokens. For the next ' +
    'page, increase offset by limit. Costs nothing.',
  scope: 'usage:read',
  input: breakdownInput,
  output: breakdownOutput.json,
  run: (args, context) =>
    reporting(context, async principal => {
      const { group_by, sort_by, limit, offset } = args
      const report = await reportOf(principal, args, MAX_DAYS, context)
      if (typeof report === 'string') return invalid('get-usage-breakdown', report)
      const reports = reportsFor(context)
      const found = await reports.ranking(report.query, group_by, sort_by, limit + 1, offset)
      const totals = totalOf(await reports.series(report.query, units.day.ms))
      const answer: Infer<typeof breakdownOutput> = {
        ...headOf(principal, report, await reports.updatedAt(report.query)),
        groupBy: group_by,
        sortBy: sort_by,
        rows: found.slice(0, limit).map(group => rowOf(group_by, group, report, context)),
        pagination: { limit, offset, hasMore: found.length > limit },
        coverage: covered(totals),
      }
      return structured(answer)
    }),
}

const bucket = (at: number, granularity: 'day' | 'hour'): string => {
  const text = new Date(at).toISOString()
  return granularity === 'day' ? text.slice(0, 10) : `${text.slice(0, 13)}:00:00Z`
}

/** Sums are kept with all dimensions, so that each of them accounts for every request. */
const covered = ({ requests }: ReportSums) => ({
  requestCount: requests,
  totalRequestCount: requests,
  complete: true,
})

async function mostUsed(
  by: ReportGroup,
  report: Report,
  reports: Pick<ReportStore, 'ranking'>,
  context: ToolContext,
): Promise<Infer<typeof row> | null> {
  const [first] = await reports.ranking(report.query, by, 'requests', 1, 0)
  return first ? rowOf(by, first, report, context) : null
}

const rowOf = (
  by: ReportGroup,
  { id, ...rest }: ReportSums & { readonly id: string },
  report: Report,
  context: ToolContext,
): Infer<typeof row> => ({ id, name: nameOf(by, id, report, context), ...shown(rest) })

function totalOf(all: readonly ReportSums[]): ReportSums {
  const counted = (of: (one: ReportSums) => number) => all.reduce((sum, one) => sum + of(one), 0)
  const paid = (of: (one: ReportSums) => bigint) => all.reduce((sum, one) => sum + of(one), 0n)
  return {
    requests: counted(one => one.requests),
    errors: counted(one => one.errors),
    cached: counted(one => one.cached),
    inputTokens: counted(one => one.inputTokens),
    outputTokens: counted(one => one.outputTokens),
    cachedTokens: counted(one => one.cachedTokens),
    reasoningTokens: counted(one => one.reasoningTokens),
    cost: paid(one => one.cost),
    creditsCost: paid(one => one.creditsCost),
    byokCost: paid(one => one.byokCost),
    storageCost: paid(one => one.storageCost),
    savings: paid(one => one.savings),
  }
}
