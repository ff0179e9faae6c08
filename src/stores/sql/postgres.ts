/**
 * `Sql` over PostgreSQL. No result belongs to a session: statements have no name and settings end with their transaction,
 * so that PgBouncer may give each transaction another connection.
 */
import pg from 'pg'
import { guarded } from '../../lib/guarded.ts'
import type { Dialect, Durability, Sql, SqlValue } from './sql.ts'

/** How long a connection may take to open. */
const CONNECT_MS = 1000
/** How long a statement may take. */
const STATEMENT_MS = 2000
/** How long a caller waits while all connections are in use. The database works then, and has much to do. */
const WAIT_MS = CONNECT_MS + STATEMENT_MS
/** How long a statement of a transaction waits for a lock. */
const LOCK_MS = 500
/** How often a transaction that the server has ended in favour of others runs. */
const TRIES = 5

/**
 * Result codes of PostgreSQL: the transaction may be repeated as it is. A lock that is not free in time (55P03) may be
 * behind a migration, whose steps wait for 2 s.
 */
const AGAIN: ReadonlySet<string> = new Set(['40001', '40P01', '55P03'])

/** Whether the server has refused values or a state, so that the same statement fails again. Missing tables and rights may come back. */
export const isDataError = (error: unknown): boolean => /^(?:2[0-3]|P0)/.test(codeOf(error))

/** Whether the connection has ended, or the answer has not come: what the statement did is unknown. */
export const isLost = (error: unknown): boolean =>
  error instanceof Error && (codeOf(error) === '' || /^(?:08|57P|E[A-Z]+$)/.test(codeOf(error)))

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Where a database is, and what this process may take of it. */
export interface PoolOptions {
  readonly url: string
  /** Most connections at a time. */
  readonly max: number
  /** Receives the errors of idle connections. */
  readonly warn: (error: unknown) => void
}

/** The pool gives callers more time than a connection has to open. */
class Connection extends pg.Client {
  constructor(options?: pg.ClientConfig) {
    super({ ...options, connectionTimeoutMillis: CONNECT_MS })
  }
}

/** Opens no connection before the first statement. */
export function openPool({ url, max, warn }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    Client: Connection,
    connectionTimeoutMillis: WAIT_MS,
    query_timeout: STATEMENT_MS,
    application_name: 'model-gateway',
    types: { getTypeParser },
    // Compiling a plan takes longer than it saves. Behind PgBouncer some connections may compile all the same.
    onConnect: client => client.query('SET jit = off'),
    allowExitOnIdle: true,
  })
  pool.on('error', warn)
  // A connection that ends between two statements of a transaction fails the next one.
  pool.on(
    'connect',
    guarded((client: pg.PoolClient) => void client.on('error', () => {}), warn),
  )
  return pool
}

/** A statement that runs by itself, or in the transaction of its connection. */
async function run<Row>(on: pg.Pool | pg.PoolClient, text: string, values: readonly SqlValue[]): Promise<Row[]> {
  return (await on.query({ text, values: values.map(withoutNul) })).rows as Row[]
}

/** Replaces NUL, which clients and servers may send: PostgreSQL has none in texts. */
const withoutNul = (value: SqlValue): SqlValue => (typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value)

const dialect: Dialect = {
  bytes: 'bytea',
  lock: 'FOR UPDATE',
  lockFree: 'FOR UPDATE SKIP LOCKED',
  elementsOf: array => `SELECT json_array_elements_text(CAST(${array} AS json))`,
  joinFirst: (table, from) => `CROSS JOIN LATERAL (SELECT * FROM ${from}) AS ${table}`,
  // Without an offset it is an ordinary join, for which PostgreSQL would read the whole table.
  joinEach: (table, where) => `CROSS JOIN LATERAL (SELECT * FROM ${table} WHERE ${where} OFFSET 0) AS ${table}`,
}

/** Within a transaction. */
class TransactionSql implements Sql {
  readonly dialect = dialect
  readonly #client: pg.PoolClient

  constructor(client: pg.PoolClient) {
    this.#client = client
  }

  query<Row>(text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return run(this.#client, text, values)
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return work(this)
  }
}

/** Transactions are `READ COMMITTED`. Rejects with the error of the driver or the server. */
export class PostgresSql implements Sql {
  readonly dialect = dialect
  readonly #pool: pg.Pool
  readonly #begin: string

  /** `turn`: transactions with the same number, of any process, run one at a time. Without it, they run side by side. */
  constructor(pool: pg.Pool, turn?: number) {
    this.#pool = pool
    // Many may wait for the turn, each for those before it.
    const inTurn = turn === undefined ? '' : `SELECT pg_advisory_xact_lock(${TURNS}, ${turn}); `
    this.#begin = `BEGIN; SET LOCAL statement_timeout = ${STATEMENT_MS}; ${inTurn}SET LOCAL lock_timeout = ${LOCK_MS}`
  }

  query<Row>(text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return repeated(() => run<Row>(this.#pool, text, values))
  }

  transaction<T>(work: (sql: Sql) => Promise<T>, durability: Durability = 'durable'): Promise<T> {
    return repeated(() => this.#once(work, durability))
  }

  async #once<T>(work: (sql: Sql) => Promise<T>, durability: Durability): Promise<T> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      await client.query(durability === 'durable' ? this.#begin : `${this.#begin}; SET LOCAL synchronous_commit = off`)
      const result = await work(new TransactionSql(client))
      await client.query('COMMIT')
      return result
    } catch (error) {
      // A connection that cannot roll back is in an unknown state, and is closed.
      await client.query('ROLLBACK').catch((cause: Error) => {
        broken = cause
      })
      throw error
    } finally {
      client.release(broken)
    }
  }
}

/** Runs again what the server has undone in favour of another transaction. */
async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === TRIES || !AGAIN.has(codeOf(error))) throw error
    }
  }
}

/** First key of the advisory locks; the second one is the turn. */
const TURNS = 0x67617465

const { INT2, INT4, INT8 } = pg.types.builtins
const integers: ReadonlySet<number> = new Set([INT2, INT4, INT8])

/** Every integer is a bigint, as `Sql` promises. */
function getTypeParser(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
  return integers.has(type) ? BigInt : pg.types.getTypeParser(type, format as 'text')
}
