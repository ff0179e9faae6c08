/** Brings the schema of a PostgreSQL database to this version, or says which version it has. */
import pg from 'pg'
import { StoreError } from '../../core/ports/stores.ts'
import type { SchemaState } from '../maintenance.ts'
import { migrations } from './migrations/index.ts'

/** How long another node's migration is waited for before this node gives up. */
const WAIT_MS = 120_000
/** How long a step waits for a lock on a table that requests use: they wait behind it. */
const LOCK_MS = 2000
/** Key of the advisory lock. */
const LOCK = 0x67617465_0001n

/**
 * Runs the missing steps in one transaction, one process at a time; returns how many they were. A newer schema is left
 * as it is: the version before it runs beside it. Rejects with a StoreError.
 */
export function migrate(url: string, steps: readonly string[] = migrations): Promise<number> {
  return connected(url, async client => {
    if ((await versionOf(client)) >= steps.length) return 0
    try {
      await client.query(`BEGIN; SET LOCAL lock_timeout = ${WAIT_MS}; SELECT pg_advisory_xact_lock(${LOCK})`)
      await client.query(`SET LOCAL lock_timeout = ${LOCK_MS}; ${VERSIONS}`)
      const missing = steps.slice(await versionOf(client))
      for (const step of missing) await client.query(step)
      const values = [steps.length, Date.now(), missing.length]
      await client.query('INSERT INTO schema_versions SELECT $1, $2 WHERE $3 > 0', values)
      await client.query('COMMIT')
      return missing.length
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      throw error
    }
  })
}

/** Reads the version of the schema. Rejects with a StoreError. */
export const schemaOf = (url: string): Promise<SchemaState> =>
  connected(url, async client => ({ present: (await versionOf(client)) || undefined, known: migrations.length }))

/** Reads what tells a database from every other one: its name, and when it got its schema. */
export const identityOf = (url: string): Promise<string> =>
  connected(url, async client => {
    const text = "SELECT current_database() || ' ' || min(applied_at) AS identity FROM schema_versions"
    return (await client.query<{ identity: string }>(text)).rows[0]!.identity
  })

const VERSIONS = 'CREATE TABLE IF NOT EXISTS schema_versions (version integer PRIMARY KEY, applied_at bigint NOT NULL)'

async function versionOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT to_regclass('schema_versions') IS NOT NULL AS made")
  if (!rows[0].made) return 0
  return (await client.query('SELECT coalesce(max(version), 0) AS version FROM schema_versions')).rows[0].version
}

/** Runs `work` on a connection of its own, whose statements may take long. Rejects with a StoreError. */
export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  checkAddress(url)
  let client: pg.Client | undefined
  try {
    const settings = { connectionTimeoutMillis: CONNECT_MS, application_name: 'model-gateway' }
    client = new pg.Client({ connectionString: url, ...settings })
    // A broken connection also rejects the running statement.
    client.on('error', () => {})
    await client.connect()
    return await work(client)
  } catch (thrown) {
    if (thrown instanceof StoreError) throw thrown
    throw new StoreError(`${CANNOT}: ${reasonOf(thrown)}`, { cause: thrown })
  } finally {
    await client?.end().catch(() => {})
  }
}

/** Throws a StoreError for what is no address. It does not show it, as the driver's error does: it may hold a password. */
export function checkAddress(url: string): void {
  try {
    if (ADDRESS.test(url)) return void new pg.Client({ connectionString: url })
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== 'ERR_INVALID_URL') return
  }
  throw new StoreError(`${CANNOT}: ${NO_ADDRESS}`)
}

const CANNOT = 'The PostgreSQL database of stores.postgres cannot be used'
const ADDRESS = /^postgres(?:ql)?:\/\//
const NO_ADDRESS =
  'its address is no URL such as postgres://user@host/name; percent-encode special characters of its password'

const CONNECT_MS = 5000

/** Returns the message of the server or the driver, which never contains the password. */
const reasonOf = (cause: unknown): string =>
  cause instanceof AggregateError ? reasonOf(cause.errors[0]) : cause instanceof Error ? cause.message : String(cause)
