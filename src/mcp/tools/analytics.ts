/** Shared by the analytics tools: the caller's scope, UTC days, and the form of sums. */
import { toNumber } from '../../core/money.ts'
import type { Principal, ReportQuery, ReportStore, ReportSums } from '../../core/ports.ts'
import { type Infer, s } from '../../core/schema.ts'
import { DAY_MS } from '../../lib/period.ts'
import { FairShare } from '../../limits/share.ts'
import { count, only, orNull, type ToolContext, type ToolResult, time, toolError } from '../tool.ts'

const USUAL_DAYS = 30
/** The longest period. */
export const MAX_DAYS = 366
/** Reports that run at the same time, and that wait; organizations share both. */
const MAX_RUNNING_QUERIES = 4
const MAX_WAITING_QUERIES = 64
const DAY = '^\\d{4}-\\d{2}-\\d{2}$'

const usd = s.number()
/** Fields of sums. */
export const measures = {
  requestCount: count,
  errorCount: count,
  cacheCount: count,
  inputTokens: count,
  outputTokens: count,
  totalTokens: count,
  reasoningTokens: count,
  cachedTokens: count,
  costUsd: usd,
  dataStorageCostUsd: usd,
  creditsCostUsd: usd,
  byokCostUsd: usd,
  discountSavingsUsd: usd,
}
/** Schemas of the reports. */
export const sums = s.object(measures)
/** A group of a breakdown. */
export const row = s.object({ id: s.string(), name: s.string(), ...measures })
/** Scope of analytics. */
export const scope = s.object({ type: s.enum('project', 'member'), projectId: s.string(), userId: orNull(s.string()) })
/** How many requests a breakdown accounts for. */
export const coverage = s.object({ requestCount: count, totalRequestCount: count, complete: s.boolean() })
const date = s.string({ format: 'date' })
/** Fields that begin every report. */
export const head = {
  scope,
  from: date,
  to: date,
  timezone: only('UTC'),
  currency: only('USD'),
  updatedAt: orNull(time),
}
/** Arguments of a period. */
export const period = {
  from: s.optional(s.string({ pattern: DAY, description: 'First UTC day, inclusive. Default: 29 days before to.' })),
  to: s.optional(s.string({ pattern: DAY, description: 'Last UTC day, inclusive. Default: today. At most 366 days.' })),
}

/** An ISO time; null for undefined. */
export const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** The start of a day, Unix milliseconds; undefined for a day that no calendar has. */
function startOf(day: string): number | undefined {
  const at = Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(at) || dayOf(at) !== day ? undefined : at
}

/** A key created by the operator has the rights of the owner. */
export const roleOf = ({ member }: Principal) => member?.role ?? 'owner'

/** Returns the scope of the caller's analytics. */
export const scopeOf = (principal: Principal): Infer<typeof scope> => ({
  type: roleOf(principal) === 'developer' ? 'member' : 'project',
  projectId: principal.projectId,
  userId: principal.member?.id ?? null,
})

/** The caller; a tool error for a credential that may not read analytics. */
export function reader({ ex }: ToolContext): Principal | ToolResult {
  const { principal } = ex.caller
  return principal?.kind === 'key'
    ? principal
    : toolError('A valid, active user API key is required to read analytics.')
}
/** Whether a helper returned a tool error in place of its value. */
export const isResult = (found: object): found is ToolResult => 'content' in found

/** The period of a report, as days and as a query. */
export interface Report {
  readonly query: ReportQuery
  readonly from: string
  readonly to: string
  /** Names of the keys that the caller may see, by id. */
  readonly keyNames: ReadonlyMap<string, string>
}

/** The report that arguments describe, or what is wrong with them. */
export async function reportOf(
  principal: Principal,
  { from, to }: { from?: string | undefined; to?: string | undefined },
  maxDays: number,
  { services }: ToolContext,
): Promise<Report | string> {
  const today = startOf(dayOf(services.now()))!
  const last = to === undefined ? today : startOf(to)
  if (last === undefined) return `to must be a day of the calendar, got "${to}"`
  const first = from === undefined ? last - (USUAL_DAYS - 1) * DAY_MS : startOf(from)
  if (first === undefined) return `from must be a day of the calendar, got "${from}"`
  if (first > last) return `from must not be after to, got ${dayOf(first)} and ${dayOf(last)}`
  if ((last - first) / DAY_MS + 1 > maxDays) return `from and to must hold at most ${maxDays} days`
  const isOwn = scopeOf(principal).type === 'member'
  const keys = await services.reports.keys(principal.projectId, isOwn ? principal.member?.id : undefined)
  return {
    query: {
      projectId: principal.projectId,
      keyIds: isOwn ? keys.map(({ id }) => id) : undefined,
      from: first,
      to: last + DAY_MS,
    },
    from: dayOf(first),
    to: dayOf(last),
    keyNames: new Map(keys.map(({ id, name }) => [id, name])),
  }
}

/** The fields that begin every report. */
export const headOf = (principal: Principal, { from, to }: Report, updatedAt: number | undefined) => ({
  scope: scopeOf(principal),
  from,
  to,
  timezone: 'UTC' as const,
  currency: 'USD' as const,
  updatedAt: iso(updatedAt),
})

/** Sums in USD, as JSON numbers. */
export const shown = (given: ReportSums): Infer<typeof sums> => ({
  requestCount: given.requests,
  errorCount: given.errors,
  cacheCount: given.cached,
  inputTokens: given.inputTokens,
  outputTokens: given.outputTokens,
  totalTokens: given.inputTokens + given.outputTokens,
  reasoningTokens: given.reasoningTokens,
  cachedTokens: given.cachedTokens,
  costUsd: toNumber(given.cost),
  dataStorageCostUsd: toNumber(given.storageCost),
  creditsCostUsd: toNumber(given.creditsCost),
  byokCostUsd: toNumber(given.byokCost),
  discountSavingsUsd: toNumber(given.savings),
})

/** The name of a group; its id where it has none. */
export function nameOf(by: string, id: string, { keyNames }: Report, { catalog }: ToolContext): string {
  if (by === 'provider') return catalog.providers.get(id)?.name ?? id
  if (by === 'model') return catalog.models.get(id)?.name ?? id
  return by === 'api_key' ? (keyNames.get(id) ?? id) : id
}

/** Resolves like `read`; a failure of the store becomes a tool error, never zeros. */
export async function reading({ services, ex }: ToolContext, read: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await read()
  } catch (err) {
    if (err !== ex.signal.reason) services.log.error({ err, request_id: ex.id }, 'usage analytics failed')
    return toolError('Usage analytics are temporarily unavailable. Try again later.')
  }
}

/** The store's reports for as long as their caller is there: each rejects once it has left. */
export function reportsFor({ services: { reports }, ex: { signal } }: ToolContext) {
  const present = () => {
    if (signal.reason) throw signal.reason
    return reports
  }
  return {
    series: async (...given) => present().series(...given),
    ranking: async (...given) => present().ranking(...given),
    updatedAt: async (...given) => present().updatedAt(...given),
  } satisfies Pick<ReportStore, 'series' | 'ranking' | 'updatedAt'>
}

const slots = new FairShare(MAX_RUNNING_QUERIES)

/** Resolves like `read`, once a report of the caller's organization may run; else with a tool error. */
export async function reporting(
  context: ToolContext,
  read: (principal: Principal) => Promise<ToolResult>,
): Promise<ToolResult> {
  const principal = reader(context)
  if (isResult(principal)) return principal
  const { signal } = context.ex
  const result = await slots.during(principal.orgId, { queue: MAX_WAITING_QUERIES, signal }, () =>
    reading(context, () => read(principal)),
  )
  return result ?? toolError('Too many usage reports are being read. Try again later.')
}
