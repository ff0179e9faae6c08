/** Usage from the hourly sums. */
import type { GroupTotals, UsageGroup, UsageQuery, UsageStore, UsageTotals } from '../../core/ports.ts'
import { hourOf } from '../rules/hours.ts'
import { ALL } from './page.ts'
import { first, type Sql, type SqlValue } from './sql.ts'
import { largest, type Sum, sumAs, sumOf } from './sums.ts'

type Counts = 'requests' | 'errors' | 'cached' | 'input_tokens' | 'output_tokens' | 'cached_tokens' | 'reasoning_tokens'
const counts: readonly Counts[] = [
  ...(['requests', 'errors', 'cached', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'] as const),
]
type Amount = 'all_cost' | 'credits_cost' | 'byok_cost' | 'storage_cost'
const amounts: Readonly<Record<Amount, string>> = {
  all_cost: 'cost',
  credits_cost: 'credits_cost',
  byok_cost: 'byok_cost',
  storage_cost: 'storage_cost',
}

/** A row of `SUMS`. */
export type SumRow = Sum<Amount> & Readonly<Record<`all_${Counts}`, bigint>>

/** SQL: the columns of `UsageTotals`, summed over `usage_hourly`. */
export const SUMS = [
  ...counts.map(column => `CAST(coalesce(sum(${column}), 0) AS bigint) AS all_${column}`),
  ...Object.entries(amounts).map(([name, column]) => sumAs(column, name)),
].join(', ')
const IN_SCOPE = `
  FROM usage_hourly
  WHERE hour >= $4 AND hour < $5
    AND (CAST($1 AS text) IS NULL OR org_id = $1)
    AND (CAST($2 AS text) IS NULL OR project_id = $2)
    AND (CAST($3 AS text) IS NULL OR key_id = $3)`

const DAY_MS = 86_400_000
/** Groups by what every hourly sum has. */
type ColumnGroup = Exclude<UsageGroup, 'end_user' | `tag:${string}`>
/** The text that each group is made by. A day is the number of days since 1970. */
export const dimensions: Readonly<Record<ColumnGroup, string>> = {
  provider: 'provider',
  model: 'model',
  app: 'source',
  api_key: 'key_id',
  project: 'project_id',
  member: '(SELECT created_by FROM keys WHERE keys.id = key_id)',
  day: `CAST(hour / ${DAY_MS} AS text)`,
}
/** Returns the id of a group: a day is an ISO 8601 date. */
export const groupId = (group: string, id: string): string =>
  group === 'day' ? new Date(Number(id) * DAY_MS).toISOString().slice(0, 10) : id
/** SQL: the names of groups that have one. */
const groupNames: Partial<Readonly<Record<ColumnGroup, string>>> = {
  api_key: 'min((SELECT name FROM keys WHERE keys.id = key_id))',
  project: 'min((SELECT name FROM projects WHERE projects.id = project_id))',
  member: 'min((SELECT email FROM members JOIN keys ON keys.created_by = members.id WHERE keys.id = key_id))',
}
type GroupRow = SumRow & { id: string; name: string | null }

const groupsBy = (group: ColumnGroup): string => `
  SELECT * FROM (
    SELECT coalesce(nullif(${dimensions[group]}, ''), 'unknown') AS id, ${groupNames[group] ?? 'NULL'} AS name,
      min(hour) AS hour, ${SUMS} ${IN_SCOPE}
    GROUP BY 1 HAVING sum(requests) > 0
  ) AS groups
  ORDER BY ${group === 'day' ? 'hour' : `${largest('all_cost')}, all_requests DESC, id`} LIMIT $6 OFFSET $7`

const SUMMED = [...counts, ...Object.values(amounts)]
const WITH_LABEL = `FROM usage_labels
  WHERE label = $8 AND day >= $4 AND day < $5
    AND (CAST($1 AS text) IS NULL OR org_id = $1)
    AND (CAST($2 AS text) IS NULL OR project_id = $2)
    AND (CAST($3 AS text) IS NULL OR key_id = $3)`
/** Sums of an end user or of a tag are those of whole days; `unknown` is the rest of all requests. */
const BY_LABEL = `
  SELECT * FROM (
    SELECT id, NULL AS name, ${SUMS} FROM (
      SELECT value AS id, ${SUMMED.join(', ')} ${WITH_LABEL}
      UNION ALL SELECT 'unknown', ${SUMMED.join(', ')} ${IN_SCOPE}
      UNION ALL SELECT 'unknown', ${SUMMED.map(name => `-${name}`).join(', ')} ${WITH_LABEL}
    ) AS parts GROUP BY 1 HAVING sum(requests) > 0
  ) AS groups
  ORDER BY ${largest('all_cost')}, all_requests DESC, id LIMIT $6 OFFSET $7`

const isColumn = (group: UsageGroup): group is ColumnGroup => Object.hasOwn(dimensions, group)

/** `UsageStore` over `usage_hourly` and `usage_labels`. */
export class SqlUsage implements UsageStore {
  readonly #sql: Sql
  readonly check: UsageStore['check']

  /** `check` compares the sums with rows, ledger and balances. */
  constructor(sql: Sql, check: UsageStore['check']) {
    this.#sql = sql
    this.check = check
  }

  /** Sums are hourly: the hours of `from` and `to` count in full, unless `to` is their start. */
  async totals(query: UsageQuery): Promise<UsageTotals> {
    const row = await first<SumRow>(this.#sql, `SELECT ${SUMS} ${IN_SCOPE}`, scopeOf(query))
    return totalsOf(row!)
  }

  /** Absent values of a request are `unknown`. */
  async breakdown(query: UsageQuery, by: UsageGroup, limit = ALL, offset = 0): Promise<GroupTotals[]> {
    const values = [...scopeOf(query), limit, offset]
    const rows = isColumn(by)
      ? await this.#sql.query<GroupRow>(groupsBy(by), values)
      : await this.#sql.query<GroupRow>(BY_LABEL, [...values, by])
    return rows.map(row => ({
      id: groupId(by, row.id),
      ...(row.name !== null && { name: row.name }),
      ...totalsOf(row),
    }))
  }
}

const scopeOf = ({ orgId, projectId, keyId, from, to }: UsageQuery): readonly SqlValue[] => [
  orgId ?? null,
  projectId ?? null,
  keyId ?? null,
  hourOf(from),
  to,
]

/** The totals of a row; amounts in nano-USD. */
export const totalsOf = (row: SumRow): UsageTotals => ({
  requests: Number(row.all_requests),
  errors: Number(row.all_errors),
  cached: Number(row.all_cached),
  inputTokens: Number(row.all_input_tokens),
  outputTokens: Number(row.all_output_tokens),
  cachedTokens: Number(row.all_cached_tokens),
  reasoningTokens: Number(row.all_reasoning_tokens),
  cost: sumOf(row, 'all_cost'),
  creditsCost: sumOf(row, 'credits_cost'),
  byokCost: sumOf(row, 'byok_cost'),
  storageCost: sumOf(row, 'storage_cost'),
})
