/** What a node keeps in PostgreSQL. */
import { type Ledger, type RetentionStore, StoreError } from '../../core/ports.ts'
import type { Maintenance } from '../maintenance.ts'
import { openPool, PostgresSql } from '../sql/postgres.ts'
import type { Sql } from '../sql/sql.ts'
import { checkBooks } from './books.ts'
import { ChangeWatch } from './changes.ts'
import { PostgresLedger } from './ledger.ts'
import { migrate, schemaOf } from './migrate.ts'
import { PostgresRetention } from './retention.ts'

/** Connections of a node: for holds and their ends, and for everything else. */
const LEDGER_CONNECTIONS = 2
const OTHER_CONNECTIONS = 4

interface PostgresOptions {
  /** Wall clock, Unix milliseconds; the store's clock by default. */
  readonly now?: (() => number) | undefined
  /** Receives failures of background work, which is retried. */
  readonly warn: (error: unknown) => void
  /** Version of this program, as nodes show it. */
  readonly version: string
  /** Path that the files of rows begin with which the database cannot take. */
  readonly spool?: string | undefined
}

/** The stores of one node that are written for PostgreSQL, and the connections of the others. */
export interface PostgresNode {
  readonly ledger: PostgresLedger & Ledger
  readonly sql: Sql
  /** Another `Sql` whose transactions run one at a time, in all processes, with those of the same number. */
  inTurn(turn: number): Sql
  readonly retention: RetentionStore
  /** Tells caches of changes by other nodes. */
  readonly changes: ChangeWatch
  /** Returns the differences between the books: see `UsageStore.check`. */
  check(): Promise<string[]>
  /** Rejects when the database cannot be written. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Brings the schema to this version and enters the node. Rejects with a StoreError, and leaves nothing open. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<PostgresNode> {
  const { warn, now = Date.now } = options
  await migrate(url)
  const pools = [LEDGER_CONNECTIONS, OTHER_CONNECTIONS].map(max => openPool({ url, max, warn }))
  const end = () => Promise.all(pools.map(pool => pool.end()))
  const [first, second] = [pools[0]!, pools[1]!]
  const sql = new PostgresSql(second)
  const retention = new PostgresRetention(url, now)
  const changes = new ChangeWatch(sql)
  try {
    await retention.prepare()
    await changes.read()
    const ledger = await PostgresLedger.open(first, options)
    return {
      ledger,
      sql,
      inTurn: turn => new PostgresSql(second, turn),
      retention,
      changes,
      check: () => checkBooks(url),
      async ping() {
        await sql.query('UPDATE changes SET version = version WHERE single')
      },
      async close() {
        changes.close()
        await ledger.close().catch(warn)
        await end()
      },
    }
  } catch (error) {
    changes.close()
    await end()
    throw error
  }
}

/** For the PostgreSQL database at `url`. */
export const postgresMaintenance = (url: string): Maintenance => ({
  name: 'stores.postgres',
  schema: () => schemaOf(url),
  async migrate() {
    const before = await schemaOf(url)
    await migrate(url)
    return before
  },
  backup: () => Promise.reject(ownTools('pg_dump')),
  restore: () => Promise.reject(ownTools('pg_restore')),
})

const ownTools = (tool: string): StoreError =>
  new StoreError(`The stores are in PostgreSQL. Use its own ${tool}, or the snapshots of whoever runs it.`)
