/** What was consumed, from the hourly sums, and whether rows, sums, ledger and balances agree. */
import type { Statement } from 'better-sqlite3'
import { formatMoney } from '../../core/money.ts'
import type { UsageGroup, UsageQuery, UsageStore, UsageTotals } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'
import { ALL } from './page.ts'
import { hourOf } from './requests.ts'

type SumRow = Readonly<Record<keyof UsageTotals, bigint>>
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

const SUMS = `
  coalesce(sum(requests), 0) AS requests,
  coalesce(sum(errors), 0) AS errors,
  coalesce(sum(cached), 0) AS cached,
  coalesce(sum(input_tokens), 0) AS inputTokens,
  coalesce(sum(output_tokens), 0) AS outputTokens,
  coalesce(sum(cached_tokens), 0) AS cachedTokens,
  coalesce(sum(reasoning_tokens), 0) AS reasoningTokens,
  coalesce(sum(cost), 0) AS cost,
  coalesce(sum(credits_cost), 0) AS creditsCost,
  coalesce(sum(byok_cost), 0) AS byokCost,
  coalesce(sum(storage_cost), 0) AS storageCost`
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
  UNION ALL SELECT org_id, 'rowCharges', sum(charged) FROM requests GROUP BY org_id
  UNION ALL SELECT org_id, 'rows', requests FROM pruned
  UNION ALL SELECT org_id, 'rowCost', cost FROM pruned
  UNION ALL SELECT org_id, 'rowCharges', charged FROM pruned
  UNION ALL SELECT org_id, 'hourlyRows', sum(requests) FROM usage_hourly GROUP BY org_id
  UNION ALL SELECT org_id, 'hourlyCost', sum(cost) FROM usage_hourly GROUP BY org_id
  UNION ALL SELECT org_id, 'entries', sum(amount) FROM ledger WHERE account = 'credits' GROUP BY org_id
  UNION ALL SELECT org_id, 'charges', -sum(amount) FROM ledger WHERE counter = 'usage' GROUP BY org_id
  UNION ALL SELECT org_id, 'creditCharges', -sum(amount) FROM ledger WHERE kind = 'charge' GROUP BY org_id
  UNION ALL SELECT org_id, 'monthCharges', -sum(amount) FROM ledger JOIN subscriptions USING (org_id)
    WHERE account = 'plan' AND created_at >= month_at GROUP BY org_id
  UNION ALL SELECT org_id, 'openHolds', sum(amount) FROM holds WHERE funds = 'credits' GROUP BY org_id
  UNION ALL SELECT org_id, 'planHolds', sum(amount) FROM holds WHERE funds IN ('plan', 'premium') GROUP BY org_id
  UNION ALL SELECT org_id, 'premiumHolds', sum(amount) FROM holds WHERE funds = 'premium' GROUP BY org_id
  UNION ALL SELECT org_id, 'balance', balance FROM balances
  UNION ALL SELECT org_id, 'held', held FROM balances
  UNION ALL SELECT org_id, 'used', used FROM balances
  UNION ALL SELECT org_id, 'planUsed', used FROM subscriptions
  UNION ALL SELECT org_id, 'planHeld', held FROM subscriptions
  UNION ALL SELECT org_id, 'premiumHeld', premium_held FROM subscriptions
  ORDER BY org`

const LIMITS = `
  SELECT id, held, (
    SELECT coalesce(sum(holds.amount), 0) FROM holds, json_each(holds.budgets) WHERE value = budgets.id
  ) AS open
  FROM budgets WHERE held <> open`

interface FactRow {
  org: string
  fact: string
  value: bigint
}

const usd = (amount: bigint): string => `${formatMoney(amount)} USD`
const plain = (count: bigint): string => String(count)

type Show = (value: bigint) => string

/** Pairs of facts that must be equal, how to show them, and how to say that they are not. */
const rules: readonly (readonly [left: string, right: string, show: Show, saysLeft: string, saysRight: string])[] = [
  ['rows', 'hourlyRows', plain, 'request rows', 'requests in the hourly sums'],
  ['rowCharges', 'charges', usd, 'charged by the request rows', 'charged in the ledger'],
  ['rowCost', 'hourlyCost', usd, 'cost of the request rows', 'cost in the hourly sums'],
  ['balance', 'entries', usd, 'balance', 'sum of the ledger'],
  ['used', 'creditCharges', usd, 'used', 'charged in the ledger'],
  ['held', 'openHolds', usd, 'held', 'sum of the open holds'],
  ['planUsed', 'monthCharges', usd, 'used of the plan', 'charged to it in the ledger'],
  ['planHeld', 'planHolds', usd, 'held of the plan', 'sum of its open holds'],
  ['premiumHeld', 'premiumHolds', usd, 'held for premium models', 'sum of their open holds'],
]

export class SqliteUsage implements UsageStore {
  readonly #totals: Statement<Scope, SumRow>
  readonly #groups: Readonly<Record<UsageGroup, Statement<Scope & Part, SumRow & { id: string }>>>
  readonly #facts: Statement<[], FactRow>
  readonly #limits: Statement<[], { id: string; held: bigint; open: bigint }>

  constructor(db: Sqlite) {
    this.#totals = db.prepare<Scope, SumRow>(`SELECT ${SUMS} ${IN_SCOPE}`).safeIntegers()
    const by = (group: UsageGroup) =>
      db
        .prepare<Scope & Part, SumRow & { id: string }>(
          `SELECT coalesce(nullif(${dimensions[group]}, ''), 'unknown') AS id, ${SUMS} ${IN_SCOPE}
          GROUP BY 1 ORDER BY cost DESC, requests DESC, id LIMIT @limit OFFSET @offset`,
        )
        .safeIntegers()
    this.#groups = { provider: by('provider'), model: by('model'), app: by('app'), api_key: by('api_key') }
    this.#facts = db.prepare<[], FactRow>(FACTS).safeIntegers()
    this.#limits = db.prepare<[], { id: string; held: bigint; open: bigint }>(LIMITS).safeIntegers()
  }

  /** Sums are kept by the hour: the hours of `from` and of `to` count in full, unless `to` is their start. */
  async totals(query: UsageQuery): Promise<UsageTotals> {
    return totalsOf(this.#totals.get(scopeOf(query))!)
  }

  /** What a request did not name is `unknown`. */
  async breakdown(
    query: UsageQuery,
    by: UsageGroup,
    limit = ALL,
    offset = 0,
  ): Promise<(UsageTotals & { id: string })[]> {
    return this.#groups[by].all({ ...scopeOf(query), limit, offset }).map(row => ({ id: row.id, ...totalsOf(row) }))
  }

  async check(): Promise<string[]> {
    const organizations = new Map<string, Map<string, bigint>>()
    for (const { org, fact, value } of this.#facts.all()) {
      const facts = organizations.get(org) ?? new Map<string, bigint>()
      organizations.set(org, facts.set(fact, (facts.get(fact) ?? 0n) + value))
    }
    const differences: string[] = []
    for (const [org, facts] of organizations) {
      for (const [left, right, show, saysLeft, saysRight] of rules) {
        const [a, b] = [facts.get(left) ?? 0n, facts.get(right) ?? 0n]
        if (a !== b) differences.push(`Organization ${org}: ${show(a)} ${saysLeft}, but ${show(b)} ${saysRight}.`)
      }
    }
    for (const { id, held, open } of this.#limits.all()) {
      differences.push(`Limit ${id}: ${usd(held)} held, but ${usd(open)} sum of its open holds.`)
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
  creditsCost: row.creditsCost,
  byokCost: row.byokCost,
  storageCost: row.storageCost,
})
