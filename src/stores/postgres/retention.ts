/** The days of request rows: a partition for each, made ahead and dropped as a whole; their sums stay. */
import type pg from 'pg'
import type { RetentionStore } from '../../core/ports.ts'
import { stampOf } from '../../lib/id.ts'
import { DAY_MS } from '../../lib/period.ts'
import { dropEndUserLimits } from '../rules/labels.ts'
import { connected } from './migrate.ts'

/** Days that have their partition before they begin. */
const DAYS_AHEAD = 3
/** Rows of other days that are deleted at a time. */
const ROWS_PER_TRANSACTION = 500
const LOCK_MS = 500
/** Advisory lock: one process at a time makes and drops partitions. */
const LOCK = 0x67617465_0002n
/** Rows of the default partition have the day of a partition, which therefore cannot be made. */
const NOT_EMPTY = '23514'

/**
 * A row of a day with a partition goes when that day is over, so that it may stay up to a day longer; one of another day
 * goes at once.
 */
export class PostgresRetention implements RetentionStore {
  readonly #url: string
  readonly #now: () => number

  constructor(url: string, now: () => number) {
    this.#url = url
    this.#now = now
  }

  /** Makes the partitions of the next days. Rejects with a StoreError. */
  prepare(): Promise<void> {
    return connected(this.#url, client => this.#makeDays(client))
  }

  prune(before: number): Promise<number> {
    return connected(this.#url, async client => {
      await this.#makeDays(client)
      for (const { name, start } of await daysOf(client)) {
        if (start + DAY_MS > before) break
        const rows = await transaction(client, () => dropDay(client, name))
        if (rows > 0) return rows
      }
      const others = await transaction(client, () => dropOthers(client, before))
      if (others > 0) return others
      return (await transaction(client, () => dropLabels(client, before))) || (await dropLimits(client, before))
    })
  }

  async #makeDays(client: pg.Client): Promise<void> {
    const today = Math.floor(this.#now() / DAY_MS) * DAY_MS
    const known = new Set((await daysOf(client)).map(({ start }) => start))
    for (let start = today; start < today + DAYS_AHEAD * DAY_MS; start += DAY_MS) {
      if (known.has(start)) continue
      const range = `FROM ('${stampOf(start)}') TO ('${stampOf(start + DAY_MS)}')`
      const text = `CREATE TABLE IF NOT EXISTS ${nameOf(start)} PARTITION OF requests FOR VALUES ${range}`
      await transaction(client, () => client.query(text)).catch((error: { code?: unknown }) => {
        if (error.code !== NOT_EMPTY) throw error
      })
    }
  }
}

interface Day {
  readonly name: string
  /** Unix milliseconds. */
  readonly start: number
}

const nameOf = (start: number): string => `requests_d${new Date(start).toISOString().slice(0, 10).replaceAll('-', '')}`

/** The days that have a partition, the oldest first. */
async function daysOf(client: pg.Client): Promise<Day[]> {
  const { rows } = await client.query<{ name: string }>(`
    SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'requests'::regclass AND relname ~ '^requests_d[0-9]{8}$' ORDER BY 1`)
  return rows.map(({ name }) => {
    const [, year, month, day] = /_d(....)(..)(..)$/.exec(name)!
    return { name, start: Date.UTC(Number(year), Number(month) - 1, Number(day)) }
  })
}

/** Within a transaction. Nothing is added to the day while its rows are summed. Returns how many they were. */
async function dropDay(client: pg.Client, name: string): Promise<number> {
  await client.query(`LOCK TABLE ${name} IN SHARE MODE`)
  const { rows } = await client.query<{ count: string }>(
    `WITH sums AS (${keepSums(name)}) SELECT count(*)::text AS count FROM ${name}`,
  )
  await client.query(`DROP TABLE ${name}`)
  return Number(rows[0]!.count)
}

/** Within a transaction. */
async function dropOthers(client: pg.Client, before: number): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    `WITH dropped AS (
      DELETE FROM requests_of_other_days WHERE id IN (
        SELECT id FROM requests_of_other_days WHERE id < $1 AND at < $2 ORDER BY id LIMIT ${ROWS_PER_TRANSACTION}
      )
      RETURNING org_id, cost, charged
    ), sums AS (${keepSums('dropped')})
    SELECT count(*)::text AS count FROM dropped`,
    [stampOf(before), before],
  )
  return Number(rows[0]!.count)
}

/** Within a transaction. Labels of days that are gone. */
async function dropLabels(client: pg.Client, before: number): Promise<number> {
  const { rowCount } = await client.query(
    `DELETE FROM request_labels WHERE (label, id) IN (
      SELECT label, id FROM request_labels WHERE id < $1 ORDER BY id LIMIT ${ROWS_PER_TRANSACTION}
    )`,
    [stampOf(Math.floor(before / DAY_MS) * DAY_MS)],
  )
  return rowCount ?? 0
}

/** Limits of end users that have not come since. */
async function dropLimits(client: pg.Client, before: number): Promise<number> {
  const { rowCount } = await client.query(dropEndUserLimits(before, ROWS_PER_TRANSACTION))
  return rowCount ?? 0
}

/** SQL: adds rows to the sums that are kept of them. */
const keepSums = (rows: string): string => `
  INSERT INTO pruned AS known (org_id, requests, cost, charged)
  SELECT org_id, count(*), coalesce(sum(cost), 0), sum(charged) FROM ${rows} GROUP BY org_id ORDER BY org_id
  ON CONFLICT (org_id) DO UPDATE SET requests = known.requests + excluded.requests,
    cost = known.cost + excluded.cost, charged = known.charged + excluded.charged`

async function transaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query(`BEGIN; SET LOCAL lock_timeout = ${LOCK_MS}; SELECT pg_advisory_xact_lock(${LOCK})`)
  try {
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}
