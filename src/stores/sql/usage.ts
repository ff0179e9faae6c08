/** Usage from the daily sums of whole days that have them, and else from the hourly ones. */
import type { GroupTotals, UsageGroup, UsageQuery, UsageStore, UsageTotals } from '../../core/ports.ts'
import { DAY_MS, hourOf } from '../../lib/period.ts'
import type { UsageDays } from './days.ts'
import { ALL, type Dialect, first, type Sql, type SqlValue } from './sql.ts'
import { COSTS, COUNTS, largest, type Sum, sumAs, sumOf } from './sums.ts'

/** A row of `SUMS`. */
export type SumRow = Sum<`all_${(typeof COSTS)[number]}`> & Readonly<Record<`all_${(typeof COUNTS)[number]}`, bigint>>

/** SQL: the columns of `UsageTotals`, summed; `sign` may be a minus. */
const summed = (sign = '') =>
  [
    ...COUNTS.map(column => `CAST(coalesce(sum(${sign}${column}), 0) AS bigint) AS all_${column}`),
    ...COSTS.map(column => sumAs(sign + column, `all_${column}`)),
  ].join(', ')
/** SQL: as `summed`, over sums by the hour. */
export const SUMS = summed()
/** SQL: sums of rows that have the columns of `SUMS`. */
const SUMS_OF_PARTS = [
  ...COUNTS.map(column => `all_${column}`),
  ...COSTS.flatMap(column => [`all_${column}_units`, `all_${column}_rest`]),
]
  .map(name => `CAST(sum(${name}) AS bigint) AS ${name}`)
  .join(', ')

/** SQL: the days of the time that have sums of their own, and the spans between them, which hourly sums are read for. */
const SPANS = `
  WITH days AS (
    SELECT day FROM usage_days
    WHERE state = 'summed' AND day >= CAST($4 AS bigint) AND day + ${DAY_MS} <= CAST($5 AS bigint)
  ), gaps AS (
    SELECT CAST($4 AS bigint) AS since, coalesce((SELECT min(day) FROM days), CAST($5 AS bigint)) AS until
    UNION ALL SELECT day + ${DAY_MS}, lead(day, 1, CAST($5 AS bigint)) OVER (ORDER BY day) FROM days
  )`
const IN_SCOPE = `
    AND (CAST($1 AS text) IS NULL OR org_id = $1)
    AND (CAST($2 AS text) IS NULL OR project_id = $2)
    AND (CAST($3 AS text) IS NULL OR key_id = $3)`
type DayLabel = 'provider' | 'model' | 'app'
/**
 * Each label has all requests; of the providers there are fewest. Without `IS TRUE`, PostgreSQL joins days and labels. It
 * may then read all labels once for each day.
 */
const ofDays = (label: DayLabel): string => `
  FROM usage_labels WHERE label = '${label}' AND day >= $4 AND day < $5
    AND (day IN (SELECT day FROM days)) IS TRUE ${IN_SCOPE}`
const ofHours = ({ joinEach }: Dialect): string =>
  `FROM gaps ${joinEach('usage_hourly', `hour >= since AND hour < until ${IN_SCOPE}`)}`
const totalsWith = (dialect: Dialect): string => `${SPANS}
  SELECT ${SUMS_OF_PARTS}
  FROM (SELECT ${SUMS} ${ofDays('provider')} UNION ALL SELECT ${SUMS} ${ofHours(dialect)}) AS parts`

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
const isDayLabel = (group: string): group is DayLabel => group === 'provider' || group === 'model' || group === 'app'
/** As `dimensions`, of a daily sum. */
const dayDimension = (group: ColumnGroup): string =>
  isDayLabel(group) ? 'value' : group === 'day' ? `CAST(day / ${DAY_MS} AS text)` : dimensions[group]
/** Returns the id of a group: a day is an ISO 8601 date. */
export const groupId = (group: string, id: string): string =>
  group === 'day' ? new Date(Number(id) * DAY_MS).toISOString().slice(0, 10) : id
/** SQL: the names of groups that have one. */
const groupNames: Partial<Readonly<Record<ColumnGroup, string>>> = {
  api_key: '(SELECT name FROM keys WHERE keys.id = groups.id)',
  project: '(SELECT name FROM projects WHERE projects.id = groups.id)',
  member: '(SELECT email FROM members WHERE members.id = groups.id)',
}
type GroupRow = SumRow & { id: string; name: string | null }

/** SQL: groups of the rows of `parts`, which have an id and the columns of `SUMS`. */
const grouped = (parts: string, name: string, order: string): string => `${SPANS}
  SELECT *, ${name} AS name FROM (
    SELECT id, ${SUMS_OF_PARTS} FROM (${parts}) AS parts GROUP BY id HAVING sum(all_requests) > 0
  ) AS groups
  ORDER BY ${order} LIMIT $6 OFFSET $7`
const BY_COST = `${largest('all_cost')}, all_requests DESC, id`
const named = (id: string): string => `coalesce(nullif(${id}, ''), 'unknown') AS id`

const groupsBy = (group: ColumnGroup, dialect: Dialect): string =>
  grouped(
    `SELECT ${named(dayDimension(group))}, ${SUMS} ${ofDays(isDayLabel(group) ? group : 'provider')} GROUP BY 1
    UNION ALL SELECT ${named(dimensions[group])}, ${SUMS} ${ofHours(dialect)} GROUP BY 1`,
    groupNames[group] ?? 'NULL',
    group === 'day' ? 'CAST(id AS bigint)' : BY_COST,
  )

const WITH_LABEL = `FROM usage_labels WHERE label = $8 AND day >= $4 AND day < $5 ${IN_SCOPE}`
/** Sums of an end user or of a tag are those of whole days; `unknown` is the rest of all requests. */
const byLabel = (dialect: Dialect): string =>
  grouped(
    `SELECT value AS id, ${SUMS} ${WITH_LABEL} GROUP BY 1
  UNION ALL SELECT 'unknown', ${SUMS} ${ofDays('provider')}
  UNION ALL SELECT 'unknown', ${SUMS} ${ofHours(dialect)}
  UNION ALL SELECT 'unknown', ${summed('-')} ${WITH_LABEL}`,
    'NULL',
    BY_COST,
  )

const isColumn = (group: UsageGroup): group is ColumnGroup => Object.hasOwn(dimensions, group)

/** `UsageStore` over `usage_hourly`, `usage_labels` and `usage_days`. */
export class SqlUsage implements UsageStore {
  readonly #sql: Sql
  readonly check: UsageStore['check']
  readonly sumDay: UsageStore['sumDay']

  /** `check` compares the sums with rows, ledger and balances. */
  constructor(sql: Sql, days: UsageDays, check: UsageStore['check']) {
    this.#sql = sql
    this.sumDay = () => days.add()
    this.check = check
  }

  /** Sums are hourly: the hours of `from` and `to` count in full, unless `to` is their start. */
  async totals(query: UsageQuery): Promise<UsageTotals> {
    const row = await first<SumRow>(this.#sql, totalsWith(this.#sql.dialect), scopeOf(query))
    return totalsOf(row!)
  }

  /** Absent values of a request are `unknown`. */
  async breakdown(query: UsageQuery, by: UsageGroup, limit = ALL, offset = 0): Promise<GroupTotals[]> {
    const values = [...scopeOf(query), limit, offset]
    const rows = isColumn(by)
      ? await this.#sql.query<GroupRow>(groupsBy(by, this.#sql.dialect), values)
      : await this.#sql.query<GroupRow>(byLabel(this.#sql.dialect), [...values, by])
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
  creditsCost: sumOf(row, 'all_credits_cost'),
  byokCost: sumOf(row, 'all_byok_cost'),
  storageCost: sumOf(row, 'all_storage_cost'),
})
