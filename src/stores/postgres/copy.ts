/** Copies the stores of one machine into an empty PostgreSQL database: all in one transaction, checked on both sides. */
import type pg from 'pg'
import { StoreError } from '../../core/ports.ts'
import { Database, type Sqlite } from '../sqlite/driver.ts'
import { openSqlite } from '../sqlite/index.ts'
import { checkUnused } from '../sqlite/maintenance.ts'
import { differencesIn } from './books.ts'
import { jsonOf } from './json.ts'
import { connected, migrate } from './migrate.ts'

const ROWS_PER_STATEMENT = 1000

/** Tables in an order in which each row finds what it references. */
const TABLES = [
  ...['organizations', 'members', 'projects', 'member_projects', 'keys', 'discounts', 'audit', 'provider_keys'],
  ...['rules', 'manifests', 'policies', 'balances', 'budgets', 'rate_limits', 'subscriptions', 'holds', 'ledger'],
  ...['requests', 'usage_hourly', 'pruned', 'oauth_clients', 'oauth_grants', 'oauth_codes', 'oauth_tokens'],
  ...['login_codes', 'responses', 'realtime_secrets', 'jobs', 'job_events', 'request_labels', 'label_keys'],
  ...['usage_labels', 'usage_days', 'contents', 'master_key_check', 'alerts'],
]
/** Triggers fill these as the rows before them come: what SQLite holds takes their place. */
const FILLED = new Set(['policies', 'balances', 'usage_days'])

/** Called after each part, with the rows of the table that are copied, of all. */
type Progress = (table: string, rows: number, all: number) => void

interface CopyOptions {
  /** Path of the SQLite database. */
  readonly from: string
  /** Address of the PostgreSQL database. */
  readonly to: string
  readonly progress: Progress
}

/**
 * Rejects with a StoreError that says why: a gateway runs on the source, the target is not empty, or books of either side
 * do not agree. Then nothing is copied. Resolves with the rows of each table that has some. Afterwards the source is as it was, but for what a start recovers.
 */
export async function copyToPostgres({ from, to, progress }: CopyOptions): Promise<Record<string, number>> {
  await settle(from)
  await migrate(to)
  const source = new Database(from, { readonly: true, fileMustExist: true })
  try {
    return await connected(to, async client => {
      await client.query('BEGIN; LOCK TABLE organizations, requests IN EXCLUSIVE MODE')
      const { rows: some } = await client.query(`SELECT 1 FROM organizations UNION ALL SELECT 1 FROM requests LIMIT 1`)
      if (some.length > 0) throw new StoreError('The PostgreSQL database is not empty: name an empty one.')
      const counts: Record<string, number> = {}
      for (const table of TABLES) {
        const count = await copyTable(source, client, table, progress)
        if (count > 0) counts[table] = count
      }
      await client.query(
        "SELECT setval(pg_get_serial_sequence('audit', 'id'), coalesce(max(id), 0) + 1, false) FROM audit",
      )
      const found = await differencesIn(client)
      if (found.length > 0) throw inconsistent('PostgreSQL', found)
      await client.query('COMMIT; ANALYZE')
      return counts
    })
  } finally {
    source.close()
  }
}

/** Recovers what the last process has left, and checks the books. */
async function settle(from: string): Promise<void> {
  checkUnused(from)
  const stores = openSqlite(from)
  try {
    await stores.ledger.recover()
    const found = await stores.usage.check()
    if (found.length > 0) throw inconsistent('SQLite', found)
  } finally {
    await stores.close()
  }
}

const inconsistent = (where: string, found: readonly string[]): StoreError =>
  new StoreError(`The books in ${where} do not agree, so that nothing is copied: ${found.slice(0, 3).join(' ')}`)

async function copyTable(source: Sqlite, client: pg.Client, table: string, progress: Progress): Promise<number> {
  const columns = await commonColumns(source, client, table)
  if (FILLED.has(table)) await client.query(`DELETE FROM ${table}`)
  const all = source.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()!
  const names = columns.join(', ')
  const insert = `
    INSERT INTO ${table} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::json)`
  const read = source.prepare<[], Record<string, unknown>>(
    `SELECT ${names} FROM ${table} ORDER BY ${orderOf(source, table)}`,
  )
  let rows = 0
  let batch: Record<string, unknown>[] = []
  const send = async () => {
    if (batch.length === 0) return
    await client.query(insert, [jsonOf(batch)])
    rows += batch.length
    batch = []
    progress(table, rows, all)
  }
  for (const row of read.safeIntegers().iterate()) {
    batch.push(textOf(row))
    if (batch.length === ROWS_PER_STATEMENT) await send()
  }
  await send()
  return rows
}

/** The order in which rows were made, where the table keeps it. */
const orderOf = (source: Sqlite, table: string): string => {
  const sql = source.prepare<[string], string>('SELECT sql FROM sqlite_schema WHERE name = ?').pluck().get(table)!
  return sql.includes('WITHOUT ROWID') ? '1' : 'rowid'
}

/** Columns of SQLite's table that are no computed ones; PostgreSQL's has them all. */
async function commonColumns(source: Sqlite, client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1 AND is_generated = 'NEVER'",
    [table],
  )
  const known = new Set(rows.map(({ name }) => name))
  const columns = source.pragma(`table_info(${table})`) as { name: string }[]
  const missing = columns.find(({ name }) => !known.has(name))
  if (missing) throw new StoreError(`PostgreSQL's schema lacks the column ${missing.name} of ${table}.`)
  return columns.map(({ name }) => name)
}

/** A row as JSON holds it: integers and bytes as the texts that PostgreSQL reads. */
function textOf(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === 'bigint') row[name] = String(value)
    else if (Buffer.isBuffer(value)) row[name] = `\\x${value.toString('hex')}`
  }
  return row
}
