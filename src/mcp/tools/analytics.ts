/** What the analytics tools share: who sees what, days of UTC, and sums as they are shown. */
import { toNumber } from '../../core/money.ts'
import type { Principal, ReportQuery, ReportSums } from '../../core/ports.ts'
import { type Infer, s } from '../../core/schema.ts'
import { count, only, orNull, type ToolContext, type ToolResult, time, toolError } from '../tool.ts'

const DAY_MS = 86_400_000
const USUAL_DAYS = 30
export const MAX_DAYS = 366
const DAY = '^\\d{4}-\\d{2}-\\d{2}$'

const usd = s.number()
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
export const sums = s.object(measures)
export const row = s.object({ id: s.string(), name: s.string(), ...measures })
export const scope = s.object({ type: s.enum('project', 'member'), projectId: s.string(), userId: orNull(s.string()) })
export const coverage = s.object({ requestCount: count, totalRequestCount: count, complete: s.boolean() })
const date = s.string({ format: 'date' })
export const head = {
  scope,
  from: date,
  to: date,
  timezone: only('UTC'),
  currency: only('USD'),
  updatedAt: orNull(time),
}
export const period = {
  from: s.optional(s.string({ pattern: DAY, description: 'First UTC day, inclusive. Default: 29 days before to.' })),
  to: s.optional(s.string({ pattern: DAY, description: 'Last UTC day, inclusive. Default: today. At most 366 days.' })),
}

export const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** When a day begins, Unix milliseconds; undefined for one that no calendar has. */
function startOf(day: string): number | undefined {
  const at = Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(at) || dayOf(at) !== day ? undefined : at
}

/** A key created by the operator has the rights of the owner. */
export const roleOf = ({ member }: Principal) => member?.role ?? 'owner'

export const scopeOf = (principal: Principal): Infer<typeof scope> => ({
  type: roleOf(principal) === 'developer' ? 'member' : 'project',
  projectId: principal.projectId,
  userId: principal.member?.id ?? null,
})

/** Checks the right to read analytics; returns the tool's error for others. */
export function reader({ ex }: ToolContext): Principal | ToolResult {
  const { principal } = ex
  return principal?.kind === 'key'
    ? principal
    : toolError('A valid, active user API key is required to read analytics.')
}
export const isResult = (found: object): found is ToolResult => 'content' in found

/** A period as days and as a query, or what is wrong with it. */
export interface Report {
  readonly query: ReportQuery
  readonly from: string
  readonly to: string
  /** Of keys that the caller may see, by id. */
  readonly keyNames: ReadonlyMap<string, string>
}

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

export const headOf = (principal: Principal, { from, to }: Report, updatedAt: number | undefined) => ({
  scope: scopeOf(principal),
  from,
  to,
  timezone: 'UTC' as const,
  currency: 'USD' as const,
  updatedAt: iso(updatedAt),
})

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

/** How a group is shown: by its name where it has one. */
export function nameOf(by: string, id: string, { keyNames }: Report, { catalog }: ToolContext): string {
  if (by === 'provider') return catalog.providers.get(id)?.name ?? id
  if (by === 'model') return catalog.models.get(id)?.name ?? id
  return by === 'api_key' ? (keyNames.get(id) ?? id) : id
}

/** What `read` resolves with; a store that fails becomes the one error of all analytics, never zeros. */
export async function reading({ services, ex }: ToolContext, read: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await read()
  } catch (err) {
    services.log.error({ err, request_id: ex.id }, 'usage analytics failed')
    return toolError('Usage analytics are temporarily unavailable. Try again later.')
  }
}
