/** Ledgers on a private PostgreSQL, and what their tests begin with. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type pg from 'pg'
import type { Test } from 'tap'
import type { Budget, JobStore, Principal } from '../../src/core/ports.ts'
import { Keyring } from '../../src/stores/keyring.ts'
import { checkBooks } from '../../src/stores/postgres/books.ts'
import { ChangeWatch, markChange } from '../../src/stores/postgres/changes.ts'
import { postgresJobs } from '../../src/stores/postgres/index.ts'
import { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { migrate } from '../../src/stores/postgres/migrate.ts'
import { livingNodes } from '../../src/stores/postgres/nodes.ts'
import { PostgresRetention } from '../../src/stores/postgres/retention.ts'
import { UsageDays } from '../../src/stores/sql/days.ts'
import { sqlStores } from '../../src/stores/sql/index.ts'
import { openPool, PostgresSql } from '../../src/stores/sql/postgres.ts'
import { SqlUsage } from '../../src/stores/sql/usage.ts'
import { principalOf } from '../core/principal.ts'
import { type PostgresServer, postgresServer } from '../helpers/postgres.ts'
import { NOON, organizationsIn, type Subject, temporaryFolder } from './subject.ts'

/** Number of the turn in which operators' changes run. */
const TURN = 1

/** The stores of one node, with what its tests begin with. */
export interface PostgresStores extends Subject, Pick<PostgresSubject, 'rows'> {
  readonly url: string
  readonly keyring: Keyring
  /** Jobs and ledger of another node on the same database. */
  another(options?: {
    readonly byStoreClock?: boolean
  }): Promise<{ readonly jobs: JobStore; readonly ledger: PostgresLedger }>
}

/** The stores of one node on an empty database that no other test has meanwhile. */
export async function postgresStores(t: Pick<Test, 'teardown'>): Promise<PostgresStores> {
  const { url, pool, clock, node, rows } = await postgresSubject(t, { again: true })
  const sql = new PostgresSql(pool)
  const now = () => clock.now
  const watch = new ChangeWatch(sql)
  await watch.read()
  t.teardown(() => watch.close())
  const ring = new Keyring({ given: randomBytes(32).toString('base64url'), file: '' })
  const stores = sqlStores(sql, {
    now,
    keyring: () => ring,
    changes: new PostgresSql(pool, TURN),
    mark: markChange,
    changeSource: () => watch.source(),
  })
  const spool = join(temporaryFolder(t), 'gateway.db')
  const another: PostgresStores['another'] = async ({ byStoreClock = false } = {}) => {
    const ledger = await node({ spool })
    const options = { keyring: () => ring, keys: stores.keys, now: byStoreClock ? undefined : now }
    return { ledger, jobs: postgresJobs(new PostgresSql(pool), ledger, options) }
  }
  const { jobs, ledger } = await another()
  const all: Omit<Subject, 'clock' | 'organization'> = {
    ...stores,
    jobs,
    ledger,
    usage: new SqlUsage(sql, new UsageDays(sql, now), () => checkBooks(url)),
    retention: new PostgresRetention(url, now),
    identity: undefined,
    nodes: undefined,
    living: () => livingNodes(sql),
    ping: async () => {},
    close: async () => {},
  }
  return {
    ...all,
    url,
    rows,
    clock,
    another,
    keyring: ring,
    exec: text => pool.query(text),
    organization: organizationsIn(all),
  }
}

export interface PostgresSubject {
  readonly url: string
  readonly clock: { now: number }
  readonly server: PostgresServer
  /** Connections of the test, which see what is committed. */
  readonly pool: pg.Pool
  /** Another node on the same database. */
  node(options?: { readonly spool?: string; readonly url?: string }): Promise<PostgresLedger>
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>
}

interface Options {
  /** The server, in place of the one that the tests of this process share. */
  readonly given?: PostgresServer
  /** Whether the database may have served another test, which has changed rows alone: a new one takes longer than most tests. */
  readonly again?: boolean
}

let template: Promise<string> | undefined
/** Databases that tests have left, emptied. */
const emptied: string[] = []

/** A database with the schema, which no other test has meanwhile. */
export async function postgresSubject(
  t: Pick<Test, 'teardown'>,
  { given, again = false }: Options = {},
): Promise<PostgresSubject> {
  const server = given ?? (await postgresServer())
  if (!given) template ??= migrated(server)
  const left = again ? emptied.pop() : undefined
  const url = left ?? (await server.database(given ? await migrated(server) : await template))
  const clock = { now: NOON }
  const pool = openPool({ url, max: 4, warn: () => {} })
  const ended: (() => Promise<unknown>)[] = []
  t.teardown(async () => {
    for (const end of ended) await end()
    if (again) {
      await pool.query(await emptying(pool))
      emptied.push(url)
    }
    await pool.end()
  })
  return {
    url,
    clock,
    server,
    pool,
    async node(options = {}) {
      const connections = openPool({ url: options.url ?? url, max: 2, warn: () => {} })
      const node = { version: 'test', now: () => clock.now, warn: () => {}, spool: options.spool }
      const ledger = await PostgresLedger.open(connections, node)
      ended.push(async () => {
        await ledger.close().catch(() => {})
        await connections.end()
      })
      return ledger
    },
    rows: async (sql, values) => (await pool.query(sql, values)).rows,
  }
}

/** SQL that drops the partitions of days and deletes all rows but those of the schema itself. */
export async function emptying(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ tables: string; days: string | null }>(`
    SELECT string_agg(format('DELETE FROM %I;', relname), ' ') FILTER (WHERE relkind = 'p' OR NOT relispartition) AS tables,
      string_agg(format('DROP TABLE %I;', relname), ' ') FILTER (WHERE relname ~ '^requests_d[0-9]{8}$') AS days
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
      AND relname NOT IN ('schema_versions', 'changes')`)
  // TRUNCATE would make new files for each table and index. A replica has no triggers, which refuse to delete.
  const [{ tables, days }] = rows as [{ tables: string; days: string | null }]
  return `BEGIN; SET LOCAL session_replication_role = replica; ${days ?? ''} ${tables} COMMIT`
}

/** The name of a database with the schema, which others copy. */
async function migrated(server: PostgresServer): Promise<string> {
  const url = await server.database()
  await migrate(url)
  return new URL(url).pathname.slice(1)
}

let count = 0
/** A new organization with a key, whose balance is `credits`: the principal of that key. */
export async function seeded(
  { rows }: Pick<PostgresSubject, 'rows'>,
  account: Principal['account'],
  credits: bigint,
  budgets: readonly Budget[] = [],
): Promise<Principal> {
  const n = ++count
  const principal = principalOf({ orgId: `org-${n}`, projectId: `project-${n}`, keyId: `key-${n}`, account, budgets })
  await rows('INSERT INTO organizations (id, name, account, created_at) VALUES ($1, $1, $2, 0)', [
    principal.orgId,
    account,
  ])
  await rows('UPDATE balances SET balance = $2 WHERE org_id = $1', [principal.orgId, credits])
  const { projectId, keyId } = principal
  await rows("INSERT INTO projects (id, org_id, name, created_at) VALUES ($1, $2, 'p', 0)", [
    projectId,
    principal.orgId,
  ])
  await rows(
    "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES ($1, $2, 'k', 'key', $1, '', 0)",
    [keyId, projectId],
  )
  if (credits !== 0n) {
    const text = "INSERT INTO ledger (org_id, request_id, kind, amount, created_at) VALUES ($1, $2, 'topup', $3, 0)"
    await rows(text, [principal.orgId, `topup-${n}`, credits])
  }
  for (const { id, of, limit, period, zone } of budgets) {
    const text = `INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held)
      VALUES ($1, $1, $2, $3, $4, $5, 0, 0, 0)`
    await rows(text, [id, of, period, zone, limit])
  }
  return principal
}
