/** SQL that both databases run, the values of its rows, pages of long lists, and its errors. */
import type { Page } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'

/**
 * SQL that SQLite and PostgreSQL both run. Parameters are `$1…`; a text is constant, so that it can be prepared once.
 *
 * Both drivers return every integer column as bigint, a BLOB or bytea as Buffer, and NULL as null. A condition is a
 * boolean in PostgreSQL and an integer in SQLite: read it with `Boolean`. Cast a parameter whose type PostgreSQL cannot
 * tell (`CAST($1 AS text) IS NULL`), and a sum of integers, which is numeric there (`CAST(sum(amount) AS bigint)`).
 * Write names of columns in lower case: PostgreSQL folds them.
 */
export interface Sql {
  readonly dialect: Dialect
  /**
   * Runs one statement with `$1…` parameters; returns its rows. Outside a transaction it is one by itself, which is
   * durable when this resolves.
   */
  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. Resolves when the
   * transaction is as safe as `durability` says. `work` uses only the `sql` that it receives, awaits nothing else, and
   * may run again when the transaction has to be repeated. Within a transaction, `work` is part of that one.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, durability?: Durability): Promise<T>
}

/** The few words in which the two differ. */
export interface Dialect {
  /** Type of bytes. */
  readonly bytes: 'blob' | 'bytea'
  /** Ends a query that locks the rows it finds, in their order. Nothing where one transaction writes at a time. */
  readonly lock: '' | 'FOR UPDATE'
  /** Locks as `lock` does, and leaves out rows that another transaction has locked. */
  readonly lockFree: '' | 'FOR UPDATE SKIP LOCKED'
  /** Returns a query for the texts of a JSON array. */
  elementsOf(array: string): string
  /** Returns a join with the rows that a query finds for each row before it: `FROM` of the query, up to its limit. */
  joinFirst(table: string, from: string): string
  /** Returns a join with the rows of a table that meet a condition, which an index finds for each row before it. */
  joinEach(table: string, where: string): string
}

/** Value of a parameter. */
export type SqlValue = string | number | bigint | boolean | Uint8Array | null

/** A condition or a flag of a row. */
export type Flag = boolean | bigint

/** When a write is done: when it survives the process, or the machine (the default). */
export type Durability = 'committed' | 'durable'

/** Returns the first row of a statement. */
export async function first<Row>(sql: Sql, text: string, values?: readonly SqlValue[]): Promise<Row | undefined> {
  const [row] = await sql.query<Row>(text, values)
  return row
}

/** Returns an integer that is no money, such as a time. */
export const numberOf = <T extends bigint | null>(value: T): number | (T extends null ? null : never) =>
  (value === null ? null : Number(value)) as number | (T extends null ? null : never)

/** Returns the ISO 8601 form of a time in Unix milliseconds. */
export const isoOf = (at: bigint): string => new Date(Number(at)).toISOString()

/** A limit above every number of rows: PostgreSQL takes no negative one, SQLite no NULL. */
export const ALL = Number.MAX_SAFE_INTEGER

/** Values of a page for a statement: all rows where the caller gives no page or no limit. */
export const pageOf = ({ after, limit = ALL }: Page = {}): { after: string | null; limit: number } => ({
  after: after ?? null,
  limit,
})

/** SQL: rows of `table` after the one whose id is parameter `position`: all where it is NULL, none where no row has it. */
export const isAfter = (table: string, position: number): string =>
  `${table}.rowid > CASE WHEN CAST($${position} AS text) IS NULL THEN 0
    ELSE (SELECT rowid FROM ${table} WHERE id = $${position}) END`

/** Returns a function that runs work on a database, and rejects with what `error` makes of its failure. */
export const rejectingWith =
  (error: (cause: unknown) => Error) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (cause) {
      throw error(cause)
    }
  }

/** Rejects with `billing_unavailable`. */
export const explained = rejectingWith(errors.billingUnavailable)
/** Rejects with `store_unavailable`. */
export const attempt = rejectingWith(errors.storeUnavailable)
