/** Usage from the hourly sums, and the consistency of rows, sums, ledger and balances. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Statement } from 'better-sqlite3'
import {
  type GroupTotals,
  type UsageGroup,
  type UsageQuery,
  type UsageStore,
  type UsageTotals,
  usageGroups,
} from '../../core/ports.ts'
import { hourOf } from '../rules/hours.ts'
import { JOBS_OWNER } from '../rules/jobs.ts'
import { differences, limitDifference } from '../rules/usage.ts'
import { Database, type Sqlite } from './driver.ts'
import { ALL } from './page.ts'
import { largest, type Sum, sumAs, sumOf } from './sums.ts'

/** A row of `SUMS`, read with `safeIntegers`. */
export type SumRow = Sum<Amount> & Readonly<Record<Exclude<keyof UsageTotals, Amount>, bigint>>
interface Scope {
  org: string | null
  project: string | null
  key: string | null
  from: number
  to: number
}
interface Part {
  limit: number
  offset: number
}

const amounts = {
  cost: 'cost',
  creditsCost: 'credits_cost',
  byokCost: 'byok_cost',
  storageCost: 'storage_cost',
} as const
type Amount = keyof typeof amounts

/** SQL: the columns of `UsageTotals`, summed over `usage_hourly`. */
export const SUMS = `
  coalesce(sum(requests), 0) AS requests,
  coalesce(sum(errors), 0) AS errors,
  coalesce(sum(cached), 0) AS cached,
  coalesce(sum(input_tokens), 0) AS inputTokens,
  coalesce(sum(output_tokens), 0) AS outputTokens,
  coalesce(sum(cached_tokens), 0) AS cachedTokens,
  coalesce(sum(reasoning_tokens), 0) AS reasoningTokens,
  ${Object.entries(amounts)
    .map(([name, column]) => sumAs(column, name))
    .join(', ')}`
const IN_SCOPE = `
  FROM usage_hourly
  WHERE hour >= @from AND hour < @to
    AND (@org IS NULL OR org_id = @org)
    AND (@project IS NULL OR project_id = @project)
    AND (@key IS NULL OR key_id = @key)`

/** The column that each group is made by. */
export const dimensions: Readonly<Record<UsageGroup, string>> = {
  provider: 'provider',
  model: 'model',
  app: 'source',
  api_key: 'key_id',
  project: 'project_id',
  member: '(SELECT created_by FROM keys WHERE keys.id = key_id)',
  day: "date(hour / 1000, 'unixepoch')",
}
/** SQL: the names of groups that have one. */
const groupNames: Partial<Readonly<Record<UsageGroup, string>>> = {
  api_key: '(SELECT name FROM keys WHERE keys.id = key_id)',
  project: '(SELECT name FROM projects WHERE projects.id = project_id)',
  member: '(SELECT email FROM members JOIN keys ON keys.created_by = members.id WHERE keys.id = key_id)',
}
type GroupRow = SumRow & { id: string; name: string | null }

/** Sums of each source of truth by organization: names of the sums, and the rows. */
const sources: readonly (readonly [facts: readonly string[], rows: string])[] = [
  [['rows', 'rowCost', 'rowCharges'], 'SELECT org_id, 1, coalesce(cost, 0), charged FROM requests'],
  [['rows', 'rowCost', 'rowCharges'], 'SELECT org_id, requests, cost, charged FROM pruned'],
  [['hourlyRows', 'hourlyCost'], 'SELECT org_id, requests, cost FROM usage_hourly'],
  [
    ['entries', 'charges', 'creditCharges', 'monthCharges'],
    `SELECT org_id, iif(account = 'credits', amount, 0), iif(counter = 'usage', -amount, 0),
      iif(kind = 'charge', -amount, 0), iif(account = 'plan' AND created_at >= month_at, -amount, 0)
    FROM ledger LEFT JOIN subscriptions USING (org_id)`,
  ],
  [
    ['openHolds', 'planHolds', 'premiumHolds'],
    `SELECT org_id, iif(funds = 'credits', amount, 0), iif(funds IN ('plan', 'premium'), amount, 0),
      iif(funds = 'premium', amount, 0)
    FROM holds`,
  ],
  [['balance', 'held', 'used'], 'SELECT org_id, balance, held, used FROM balances'],
  [['planUsed', 'planHeld', 'premiumHeld'], 'SELECT org_id, used, held, premium_held FROM subscriptions'],
]
/** Rows read before yielding to the event loop: a millisecond or two. */
const AT_ONCE = 1000

const LIMITS = `
  WITH opened AS MATERIALIZED (
    SELECT value AS id, sum(holds.amount) AS sum FROM holds, json_each(holds.budgets) GROUP BY 1
  )
  SELECT budgets.id, held, coalesce(sum, 0) AS open FROM budgets LEFT JOIN opened ON opened.id = budgets.id
  WHERE held <> open`

interface LimitRow {
  id: string
  held: bigint
  open: bigint
}

/** A running job has one hold of its amount; an ended one has none and is charged its cost at most once. */
const JOBS = `
  SELECT 'job ' || jobs.id || ': ' || iif(completed_at IS NULL, 'no hold of its amount', 'a hold though it has ended')
  FROM jobs LEFT JOIN holds ON holds.id = hold_id
  WHERE iif(completed_at IS NULL,
    holds.amount IS NOT jobs.amount OR (state <> 'creating' AND holds.owner <> '${JOBS_OWNER}'), holds.id IS NOT NULL)
  UNION ALL
  SELECT 'job ' || jobs.id || ': charged ' || -ledger.amount || ', though it cost ' || coalesce(cost, 0)
  FROM jobs JOIN ledger ON ledger.request_id = log_id AND ledger.kind = 'charge'
  WHERE jobs.funds = 'credits' AND -ledger.amount < coalesce(cost, 0)`

/** `UsageStore` over `usage_hourly`; `check` compares it with rows, ledger and balances. */
export class SqliteUsage implements UsageStore {
  readonly #db: Sqlite
  readonly #totals: Statement<Scope, SumRow>
  readonly #groups: Readonly<Record<UsageGroup, Statement<Scope & Part, GroupRow>>>

  constructor(db: Sqlite) {
    this.#db = db
    this.#totals = db.prepare<Scope, SumRow>(`SELECT ${SUMS} ${IN_SCOPE}`).safeIntegers()
    const by = (group: UsageGroup) => {
      const order = group === 'day' ? 'id' : `${largest('cost')}, requests DESC, id`
      return db
        .prepare<Scope & Part, GroupRow>(
          `SELECT coalesce(nullif(${dimensions[group]}, ''), 'unknown') AS id, ${groupNames[group] ?? 'NULL'} AS name,
            ${SUMS} ${IN_SCOPE}
          GROUP BY 1 HAVING sum(requests) > 0
          ORDER BY ${order} LIMIT @limit OFFSET @offset`,
        )
        .safeIntegers()
    }
    const statements = usageGroups.map(group => [group, by(group)] as const)
    this.#groups = Object.fromEntries(statements) as Record<UsageGroup, Statement<Scope & Part, GroupRow>>
  }

  /** Sums are hourly: the hours of `from` and `to` count in full, unless `to` is their start. */
  async totals(query: UsageQuery): Promise<UsageTotals> {
    return totalsOf(this.#totals.get(scopeOf(query))!)
  }

  /** Absent values of a request are `unknown`. */
  async breakdown(query: UsageQuery, by: UsageGroup, limit = ALL, offset = 0): Promise<GroupTotals[]> {
    const rows = this.#groups[by].all({ ...scopeOf(query), limit, offset })
    return rows.map(row => ({ id: row.id, ...(row.name !== null && { name: row.name }), ...totalsOf(row) }))
  }

  /** Reads every row, yielding to the event loop; concurrent writes are not seen. */
  async check(): Promise<string[]> {
    const { name, memory } = this.#db
    const db = memory ? new Database(this.#db.serialize()) : new Database(name, { readonly: true, timeout: 0 })
    try {
      // A read transaction: everything is as of the first row.
      db.exec('BEGIN')
      return await differencesIn(db)
    } finally {
      db.close()
    }
  }
}

async function differencesIn(db: Sqlite): Promise<string[]> {
  const organizations = new Map<string, Map<string, bigint>>()
  for (const [facts, rows] of sources) {
    for (const [org, sums] of await sumsOf(db, rows)) {
      const known = organizations.get(org) ?? new Map<string, bigint>()
      for (const [at, fact] of facts.entries()) known.set(fact, (known.get(fact) ?? 0n) + sums[at]!)
      organizations.set(org, known)
    }
  }
  const found = differences(organizations)
  for (const { id, held, open } of db.prepare<[], LimitRow>(LIMITS).safeIntegers().iterate()) {
    found.push(limitDifference(id, held, open))
  }
  found.push(...db.prepare<[], string>(JOBS).pluck().all())
  return found
}

/** Sums the columns of rows, grouped by the first column. */
async function sumsOf(db: Sqlite, rows: string): Promise<Map<string, bigint[]>> {
  const all = new Map<string, bigint[]>()
  let count = 0
  for (const [org, ...values] of db.prepare<[], [string, ...bigint[]]>(rows).raw().safeIntegers().iterate()) {
    const sums = all.get(org)
    if (!sums) all.set(org, values)
    else for (let at = 0; at < sums.length; at++) sums[at]! += values[at]!
    if (++count % AT_ONCE === 0) await turn()
  }
  return all
}

const scopeOf = (query: UsageQuery): Scope => ({
  org: query.orgId ?? null,
  project: query.projectId ?? null,
  key: query.keyId ?? null,
  from: hourOf(query.from),
  to: query.to,
})

/** The totals of a row; amounts in nano-USD. */
export const totalsOf = (row: SumRow): UsageTotals => ({
  requests: Number(row.requests),
  errors: Number(row.errors),
  cached: Number(row.cached),
  inputTokens: Number(row.inputTokens),
  outputTokens: Number(row.outputTokens),
  cachedTokens: Number(row.cachedTokens),
  reasoningTokens: Number(row.reasoningTokens),
  cost: sumOf(row, 'cost'),
  creditsCost: sumOf(row, 'creditsCost'),
  byokCost: sumOf(row, 'byokCost'),
  storageCost: sumOf(row, 'storageCost'),
})
