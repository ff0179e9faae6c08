/** The consistency of rows, sums, ledger and balances. */
import { setImmediate as turn } from 'node:timers/promises'
import { differences, limitDifference } from '../rules/usage.ts'
import { DAILY, HOURLY_OF_DAYS } from '../sql/days.ts'
import { JOB_DIFFERENCES } from '../sql/job-differences.ts'
import { Database, type Sqlite } from './driver.ts'

/** Sums of each source of truth by organization: names of the sums, and the rows. */
const sources: readonly (readonly [facts: readonly string[], rows: string])[] = [
  [['rows', 'rowCost', 'rowCharges'], 'SELECT org_id, 1, coalesce(cost, 0), charged FROM requests'],
  [['rows', 'rowCost', 'rowCharges'], 'SELECT org_id, requests, cost, charged FROM pruned'],
  [['hourlyRows', 'hourlyCost'], 'SELECT org_id, requests, cost FROM usage_hourly'],
  [['dailyRows', 'dailyCost'], DAILY],
  [['summedRows', 'summedCost'], HOURLY_OF_DAYS],
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
const ROWS_BEFORE_YIELD = 1000

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

/** Compares rows, sums, ledger and balances. Reads every row, yielding to the event loop; concurrent writes are not seen. */
export async function checkBooks(database: Sqlite): Promise<string[]> {
  const { name, memory } = database
  const db = memory ? new Database(database.serialize()) : new Database(name, { readonly: true, timeout: 0 })
  try {
    // A read transaction: everything is as of the first row.
    db.exec('BEGIN')
    return await differencesIn(db)
  } finally {
    db.close()
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
  found.push(...db.prepare<[], string>(JOB_DIFFERENCES).pluck().all())
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
    if (++count % ROWS_BEFORE_YIELD === 0) await turn()
  }
  return all
}
