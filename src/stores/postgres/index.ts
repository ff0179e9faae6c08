/** All stores of one node of several, in a PostgreSQL database. */
import type pg from 'pg'
import type { PoolState } from '../../core/ports.ts'
import { type JobStore, StoreError, type Stores } from '../../core/ports.ts'
import { HOUR_MS } from '../../lib/period.ts'
import type { Keyring } from '../keyring.ts'
import type { Maintenance } from '../maintenance.ts'
import { UsageDays } from '../sql/days.ts'
import { sqlStores } from '../sql/index.ts'
import { sqlJobs } from '../sql/jobs/index.ts'
import type { SqlKeys } from '../sql/keys.ts'
import { openPool, PostgresSql } from '../sql/postgres.ts'
import type { Sql } from '../sql/sql.ts'
import { SqlUsage } from '../sql/usage.ts'
import { checkBooks } from './books.ts'
import { ChangeWatch, markChange } from './changes.ts'
import { PostgresLedger } from './ledger.ts'
import { identityOf, migrate, schemaOf } from './migrate.ts'
import { listNodes, livingNodes } from './nodes.ts'
import { PostgresRetention } from './retention.ts'

/** Connections of a node: for holds and their ends, and for everything else. */
const LEDGER_CONNECTIONS = 2
const OTHER_CONNECTIONS = 4
/** A node whose clock is further off would delete what is not old, and take keys and sessions for expired. */
const MAX_SKEW_HOURS = 24
/** Turn of operators' changes: one at a time, on all nodes. */
const CHANGES_TURN = 1

interface PostgresOptions {
  /** Wall clock, Unix milliseconds; where it is absent, the store's clock decides about money. */
  readonly now?: (() => number) | undefined
  /** Receives failures of background work, which is retried. */
  readonly warn: (error: unknown) => void
  /** Called after a change of keys or policies by this process. */
  readonly changed?: (() => void) | undefined
  readonly keyring: () => Keyring
  /** Version of this program, as nodes show it. */
  readonly version: string
  /** Required `identity`; any when absent. */
  readonly identity?: string | undefined
  /** Path that the files of rows begin with which the database cannot take. */
  readonly spool?: string | undefined
}

/** Brings the schema to this version and enters the node. Rejects with a StoreError, and leaves nothing open. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Stores> {
  const { warn, changed, keyring, version, now = Date.now } = options
  await migrate(url)
  const identity = await identityOf(url)
  if (options.identity !== undefined && options.identity !== identity) {
    throw new StoreError('stores.postgres leads to another database than before. Restart the gateway.')
  }
  const [first, second] = [
    openPool({ url, max: LEDGER_CONNECTIONS, warn }),
    openPool({ url, max: OTHER_CONNECTIONS, warn }),
  ]
  const sql = new PostgresSql(second)
  const changes = new PostgresSql(second, CHANGES_TURN)
  const watch = new ChangeWatch(sql)
  const close = async () => {
    watch.close()
    await Promise.all([first.end(), second.end()])
  }
  try {
    if (options.now === undefined) await checkClock(sql)
    const retention = new PostgresRetention(url, now)
    // A backup may lock the table for long. Rows of days without a partition have a default one.
    await retention.prepare().catch(warn)
    await watch.read()
    const ledger = await PostgresLedger.open(first, { ...options, version })
    const stores = sqlStores(sql, {
      ...{ now, keyring, changed, changes },
      mark: markChange,
      changeSource: () => watch.source(),
    })
    return {
      ...stores,
      identity,
      ledger,
      jobs: postgresJobs(sql, ledger, { keyring, keys: stores.keys, now: options.now }),
      usage: new SqlUsage(sql, new UsageDays(sql, () => clock(sql)), () => checkBooks(url)),
      retention,
      nodes: {
        list: () => listNodes(sql, version),
        report: read => ledger.nodes.report(read),
        pools: () => [poolState('ledger', first), poolState('others', second)],
      },
      living: () => livingNodes(sql),
      async ping() {
        const [row] = await sql.query<{ only: string }>("SELECT current_setting('transaction_read_only') AS only")
        if (row?.only === 'on') throw new StoreError('stores.postgres takes no writes: it is a standby, or read-only.')
      },
      async close() {
        await ledger.close().catch(warn)
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const poolState = (name: string, { options, totalCount, idleCount, waitingCount }: pg.Pool): PoolState => ({
  ...{ name, inUse: totalCount - idleCount, most: options.max, waiting: waitingCount },
})

interface PostgresJobsOptions {
  readonly keyring: () => Keyring
  readonly keys: SqlKeys
  /** Where it is absent, leases end by the clock of the database: those of nodes may differ. */
  readonly now: (() => number) | undefined
}

/** The jobs of all nodes. */
export const postgresJobs = (sql: Sql, ledger: PostgresLedger, { keyring, keys, now }: PostgresJobsOptions): JobStore =>
  sqlJobs(sql, {
    ...{ keyring, keys },
    ledger: within => ledger.within(within),
    clock: now ? undefined : clock,
  })

async function clock(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ now: bigint }>('SELECT now_ms() AS now')
  return Number(row!.now)
}

async function checkClock(sql: Sql): Promise<void> {
  const hours = Math.round(Math.abs(Date.now() - (await clock(sql))) / HOUR_MS)
  if (hours <= MAX_SKEW_HOURS) return
  throw new StoreError(`The clock of stores.postgres is ${hours} hours from that of this machine. Set the wrong one.`)
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
  new StoreError(`The stores are in PostgreSQL. Use its own ${tool}, or the snapshots of the service that runs it.`)
