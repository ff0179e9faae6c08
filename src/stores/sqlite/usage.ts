/** What was consumed, from the hourly sums, and whether rows, sums, ledger and balances agree. */
import type { Statement } from 'better-sqlite3'
import { formatMoney } from '../../core/money.ts'
import type { UsageGroup, UsageQuery, UsageStore, UsageTotals } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'
import { hourOf } from './requests.ts'

type SumRow = Readonly<Record<keyof UsageTotals, bigint>>
interface Scope {
  org: string | null
  project: string | null
  key: string | null
  from: number
  to: number
}

const SUMS = `
  coalesce(sum(requests), 0) AS requests,
  coalesce(sum(errors), 0) AS errors,
  coalesce(sum(cached), 0) AS cached,
  coalesce(sum(input_tokens), 0) AS inputTokens,
  coalesce(sum(output_tokens), 0) AS outputTokens,
  coalesce(sum(cached_tokens), 0) AS cachedTokens,
  coalesce(sum(reasoning_tokens), 0) AS reasoningTokens,
  coalesce(sum(cost), 0) AS cost`
const IN_SCOPE = `
  FROM usage_hourly
  WHERE hour >= @from AND hour < @to
    AND (@org IS NULL OR org_id = @org)
    AND (@project IS NULL OR project_id = @project)
    AND (@key IS NULL OR key_id = @key)`

const dimensions: Readonly<Record<UsageGroup, string>> = {
  provider: 'provider',
  model: 'model',
  app: 'source',
  api_key: 'key_id',
}

/** One sum per organization and source of truth. All in one statement, hence of one moment. */
const FACTS = `
  SELECT org_id AS org, 'rows' AS fact, count(*) AS value FROM requests GROUP BY org_id
  UNION ALL SELECT org_id, 'rowCost', coalesce(sum(cost), 0) FROM requests GROUP BY org_id
  UNION ALL SELECT org_id, 'hourlyRows', sum(requests) FROM usage_hourly GROUP BY org_id
  UNION ALL SELECT org_id, 'hourlyCost', sum(cost) FROM usage_hourly GROUP BY org_id
  UNION ALL SELECT org_id, 'entries', sum(amount) FROM ledger GROUP BY org_id
  UNION ALL SELECT org_id, 'charges', -sum(amount) FROM ledger WHERE kind = 'charge' GROUP BY org_id
  UNION ALL SELECT org_id, 'openHolds', sum(amount) FROM holds GROUP BY org_id
  UNION ALL SELECT org_id, 'balance', balance FROM balances
  UNION ALL SELECT org_id, 'held', held FROM balances
  UNION ALL SELECT org_id, 'used', used FROM balances
  ORDER BY org`

interface FactRow {
  org: string
  fact: string
  value: bigint
}

const usd = (amount: bigint): string => `${formatMoney(amount)} USD`
const plain = (count: bigint): string => String(count)

/** Pairs of facts that must be equal, and how to say that they are not. */
const rules: readonly { left: string; right: string; show: (value: bigint) => string; says: [string, string] }[] = [
  { left: 'rows', right: 'hourlyRows', show: plain, says: ['request rows', 'requests in the hourly sums'] },
  { left: 'rowCost', right: 'charges', show: usd, says: ['cost of the request rows', 'charged in the ledger'] },
  { left: 'rowCost', right: 'hourlyCost', show: usd, says: ['cost of the request rows', 'cost in the hourly sums'] },
  { left: 'balance', right: 'entries', show: usd, says: ['balance', 'sum of the ledger'] },
  { left: 'used', right: 'charges', show: usd, says: ['used', 'charged in the ledger'] },
  { left: 'held', right: 'openHolds', show: usd, says: ['held', 'sum of the open holds'] },
]

export class SqliteUsage implements UsageStore {
  readonly #totals: Statement<Scope, SumRow>
  readonly #groups: Readonly<Record<UsageGroup, Statement<Scope, SumRow & { id: string }>>>
  readonly #facts: Statement<[], FactRow>

  constructor(db: Sqlite) {
    this.#totals = db.prepare<Scope, SumRow>(`SELECT ${SUMS} ${IN_SCOPE}`).safeIntegers()
    const by = (group: UsageGroup) =>
      db
        .prepare<Scope, SumRow & { id: string }>(
          `SELECT coalesce(nullif(${dimensions[group]}, ''), 'unknown') AS id, ${SUMS} ${IN_SCOPE}
          GROUP BY 1 ORDER BY cost DESC, requests DESC, id`,
        )
        .safeIntegers()
    this.#groups = { provider: by('provider'), model: by('model'), app: by('app'), api_key: by('api_key') }
    this.#facts = db.prepare<[], FactRow>(FACTS).safeIntegers()
  }

  /** Sums are kept by the hour: the hours of `from` and of `to` count in full, unless `to` is their start. */
  async totals(query: UsageQuery): Promise<UsageTotals> {
    return totalsOf(this.#totals.get(scopeOf(query))!)
  }

  /** The costliest first. What a request did not name is `unknown`. */
  async breakdown(query: UsageQuery, by: UsageGroup): Promise<(UsageTotals & { id: string })[]> {
    return this.#groups[by].all(scopeOf(query)).map(row => ({ id: row.id, ...totalsOf(row) }))
  }

  async check(): Promise<string[]> {
    const organizations = new Map<string, Map<string, bigint>>()
    for (const { org, fact, value } of this.#facts.all()) {
      const facts = organizations.get(org) ?? new Map<string, bigint>()
      organizations.set(org, facts.set(fact, value))
    }
    const differences: string[] = []
    for (const [org, facts] of organizations) {
      for (const { left, right, show, says } of rules) {
        const [a, b] = [facts.get(left) ?? 0n, facts.get(right) ?? 0n]
        if (a !== b) differences.push(`Organization ${org}: ${show(a)} ${says[0]}, but ${show(b)} ${says[1]}.`)
      }
    }
    return differences
  }
}

const scopeOf = (query: UsageQuery): Scope => ({
  org: query.orgId ?? null,
  project: query.projectId ?? null,
  key: query.keyId ?? null,
  from: hourOf(query.from),
  to: query.to,
})

const totalsOf = (row: SumRow): UsageTotals => ({
  requests: Number(row.requests),
  errors: Number(row.errors),
  cached: Number(row.cached),
  inputTokens: Number(row.inputTokens),
  outputTokens: Number(row.outputTokens),
  cachedTokens: Number(row.cachedTokens),
  reasoningTokens: Number(row.reasoningTokens),
  cost: row.cost,
})
