/** Adds up the hourly sums of days that are over, so that queries of many days read few rows. See `usage.ts`. */
import { DAY_MS, HOUR_MS } from '../../lib/period.ts'
import { first, type Sql } from './sql.ts'
import { COSTS, COUNTS } from './sums.ts'

/** Maximum hourly sums that one transaction reads, in some milliseconds. */
const SUMS_PER_TRANSACTION = 500
/** Time between the end of a day and its sums. A trigger makes a day `stale` to which something is added later. */
const OVER_MS = 2 * HOUR_MS

/** Maps labels of daily sums in `usage_labels` to columns of `usage_hourly`. */
const labels = { provider: 'provider', model: 'model', app: 'source' } as const
const LABELS = Object.keys(labels)
  .map(label => `'${label}'`)
  .join(', ')
const KEY = 'label, day, org_id, value, project_id, key_id'
const summed = [...COUNTS, ...COSTS]

/** The place of an hourly sum, as the primary key orders them. */
const ORDER = 'hour, org_id, project_id, key_id, provider, model, source'
type Place = readonly [hour: number, ...rest: string[]]
const startOf = (hour: number): Place => [hour, '', '', '', '', '', '']
const PART = `
  FROM usage_hourly WHERE (${ORDER}) >= ($1, $2, $3, $4, $5, $6, $7) AND (${ORDER}) < ($8, $9, $10, $11, $12, $13, $14)`

/** Returns SQL for the newest day before `$1` that is not added up and not in the JSON array `$2`. */
const nextDay = (elements: string): string => `
  WITH RECURSIVE hours (hour) AS (
    SELECT max(hour) FROM usage_hourly WHERE hour < CAST($1 AS bigint)
    UNION ALL
    SELECT (SELECT max(u.hour) FROM usage_hourly u WHERE u.hour < hours.hour - hours.hour % ${DAY_MS})
    FROM hours WHERE hours.hour IS NOT NULL
  ), days AS (SELECT hour - hour % ${DAY_MS} AS day FROM hours WHERE hour IS NOT NULL)
  SELECT day FROM days
  WHERE NOT EXISTS (SELECT 1 FROM usage_days d WHERE d.day = days.day AND state = 'summed')
    AND CAST(day AS text) NOT IN (${elements})
  LIMIT 1`
const BEGIN = "INSERT INTO usage_days (day, state) VALUES ($1, 'stale') ON CONFLICT DO NOTHING"
const STATE = 'SELECT state FROM usage_days WHERE day = $1'
const CLEAR = `
  DELETE FROM usage_labels WHERE (${KEY}) IN (
    SELECT ${KEY} FROM usage_labels WHERE label IN (${LABELS}) AND day = $1 LIMIT ${SUMS_PER_TRANSACTION}
  ) RETURNING day`
const NEXT = `SELECT ${ORDER} ${PART} ORDER BY ${ORDER} LIMIT 1 OFFSET ${SUMS_PER_TRANSACTION}`
const ADD = `
  INSERT INTO usage_labels (${KEY}, ${summed.join(', ')})
  SELECT ${KEY}, ${summed.map(name => `sum(${name})`).join(', ')} FROM (${Object.entries(labels)
    .map(
      ([label, column]) => `
    SELECT '${label}' AS label, hour - hour % ${DAY_MS} AS day, org_id, ${column} AS value, project_id, key_id,
      ${summed.join(', ')} FROM part`,
    )
    .join(' UNION ALL')}
  ) AS labeled WHERE true GROUP BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE SET ${summed.map(name => `${name} = usage_labels.${name} + excluded.${name}`).join(', ')}`
/** No part has more rows than the limit. It only has PostgreSQL read them by the primary key. */
const ADD_PART = `WITH part AS (SELECT * ${PART} ORDER BY ${ORDER} LIMIT ${SUMS_PER_TRANSACTION}) ${ADD}`
const KEEP = 'UPDATE usage_days SET state = $2 WHERE day = $1'

const SUMMED = "(SELECT day FROM usage_days WHERE state = 'summed')"
/** SQL of the daily sums of whole days, and of the hourly sums that they are made of. */
export const DAILY = `SELECT org_id, requests, cost FROM usage_labels WHERE label = 'provider' AND day IN ${SUMMED}`
export const HOURLY_OF_DAYS = `
  SELECT org_id, requests, cost FROM usage_hourly WHERE hour - hour % ${DAY_MS} IN ${SUMMED}`

/** Adds up days, the newest first. Several processes may do so at once. */
export class UsageDays {
  readonly #sql: Sql
  readonly #now: () => number | Promise<number>
  readonly #nextDay: string
  /** Days that failed, such as by sums beyond 64 bits. They are tried again after all others. */
  readonly #failed = new Set<number>()

  /** `now`: the clock of the stores. */
  constructor(sql: Sql, now: () => number | Promise<number>) {
    this.#sql = sql
    this.#now = now
    this.#nextDay = nextDay(sql.dialect.elementsOf('$2'))
  }

  /** Adds a part of a day. Resolves with its start, or undefined when none is left. Rejects where a day fails. */
  async add(): Promise<number | undefined> {
    const over = (await this.#now()) - OVER_MS
    const values = [over - (over % DAY_MS), JSON.stringify([...this.#failed].map(String))]
    const found = await first<{ day: bigint }>(this.#sql, this.#nextDay, values)
    if (!found) {
      this.#failed.clear()
      return undefined
    }
    const day = Number(found.day)
    try {
      await this.#sql.transaction(sql => addPart(sql, day), 'committed')
    } catch (error) {
      this.#failed.add(day)
      throw error
    }
    return day
  }
}

/** Adds a part within a transaction. It locks the row of the day: late usage waits for it, and makes the day stale again. */
async function addPart(sql: Sql, day: number): Promise<void> {
  await sql.query(BEGIN, [day])
  const { state } = (await first<{ state: string }>(sql, `${STATE} ${sql.dialect.lock}`, [day]))!
  if (state === 'summed') return
  if (state === 'stale' && (await sql.query(CLEAR, [day])).length === SUMS_PER_TRANSACTION) return
  const place: Place = state === 'stale' ? startOf(day) : JSON.parse(state)
  const end = startOf(day + DAY_MS)
  const row = await first<Record<string, string | bigint>>(sql, NEXT, [...place, ...end])
  const next = row && ORDER.split(', ').map(name => (name === 'hour' ? Number(row[name]) : String(row[name])))
  await sql.query(ADD_PART, [...place, ...(next ?? end)])
  await sql.query(KEEP, [day, next ? JSON.stringify(next) : 'summed'])
}
