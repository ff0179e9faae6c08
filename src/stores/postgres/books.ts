/** Compares what the database holds several times: rows, hourly sums, ledger, holds, balances, plans, limits, jobs. */
import type pg from 'pg'
import { differences, limitDifference } from '../rules/usage.ts'
import { DAILY, HOURLY_OF_DAYS } from '../sql/days.ts'
import { JOB_DIFFERENCES } from '../sql/job-differences.ts'
import { connected } from './migrate.ts'

/** SQL: sums of each source of truth by organization, under the names of `differences`. */
const SOURCES: readonly string[] = [
  `SELECT org_id, count(*) AS "rows", sum(cost) AS "rowCost", sum(charged) AS "rowCharges" FROM requests GROUP BY 1`,
  'SELECT org_id, requests AS "rows", cost AS "rowCost", charged AS "rowCharges" FROM pruned',
  'SELECT org_id, sum(requests) AS "hourlyRows", sum(cost) AS "hourlyCost" FROM usage_hourly GROUP BY 1',
  `SELECT org_id, sum(requests) AS "dailyRows", sum(cost) AS "dailyCost" FROM (${DAILY}) AS sums GROUP BY 1`,
  `SELECT org_id, sum(requests) AS "summedRows", sum(cost) AS "summedCost" FROM (${HOURLY_OF_DAYS}) AS sums GROUP BY 1`,
  `SELECT org_id, sum(amount) FILTER (WHERE account = 'credits') AS "entries",
    -sum(amount) FILTER (WHERE counter = 'usage') AS "charges",
    -sum(amount) FILTER (WHERE kind = 'charge') AS "creditCharges",
    -sum(amount) FILTER (WHERE account = 'plan' AND created_at >= month_at) AS "monthCharges"
  FROM ledger LEFT JOIN subscriptions USING (org_id) GROUP BY 1`,
  `SELECT org_id, sum(amount) FILTER (WHERE funds = 'credits') AS "openHolds",
    sum(amount) FILTER (WHERE funds IN ('plan', 'premium')) AS "planHolds",
    sum(amount) FILTER (WHERE funds = 'premium') AS "premiumHolds"
  FROM holds GROUP BY 1`,
  'SELECT org_id, balance, held, used FROM balances',
  'SELECT org_id, used AS "planUsed", held AS "planHeld", premium_held AS "premiumHeld" FROM subscriptions',
]

const LIMITS = `
  WITH opened AS (
    SELECT limit_id AS id, sum(amount) AS sum FROM holds, json_array_elements_text(budgets::json) AS limit_id GROUP BY 1
  )
  SELECT id, held::text, coalesce(sum, 0)::text AS open FROM budgets LEFT JOIN opened USING (id)
  WHERE held <> coalesce(sum, 0)`

/** Returns one sentence for each difference, all as of one moment. Rejects with a StoreError. */
export const checkBooks = (url: string): Promise<string[]> =>
  connected(url, async client => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const found = await differencesIn(client)
    await client.query('COMMIT')
    return found
  })

/** Within a transaction. */
export async function differencesIn(client: pg.Client): Promise<string[]> {
  const organizations = new Map<string, Map<string, bigint>>()
  for (const source of SOURCES) {
    const { rows } = await client.query<Record<string, string | null> & { org_id: string }>(source)
    for (const { org_id, ...sums } of rows) {
      const known = organizations.get(org_id) ?? new Map<string, bigint>()
      for (const [fact, sum] of Object.entries(sums)) known.set(fact, (known.get(fact) ?? 0n) + BigInt(sum ?? 0))
      organizations.set(org_id, known)
    }
  }
  const limits = await client.query<{ id: string; held: string; open: string }>(LIMITS)
  const jobs = await client.query<{ difference: string }>(JOB_DIFFERENCES)
  return [
    ...differences(organizations),
    ...limits.rows.map(({ id, held, open }) => limitDifference(id, BigInt(held), BigInt(open))),
    ...jobs.rows.map(({ difference }) => difference),
  ]
}
