/** `Sql` over one SQLite database, whose writes share the transactions of its `Writer`. */
import type { Statement } from 'better-sqlite3'
import type { Sqlite } from '../sqlite/driver.ts'
import type { Writer } from '../sqlite/writer.ts'
import type { Dialect, Durability, Sql, SqlValue } from './sql.ts'

/** A prepared text, with the index of the value that each of its parameters takes. */
interface Prepared {
  readonly statement: Statement<unknown[], unknown>
  readonly order: readonly number[]
}

/** Statements by text, prepared once. */
class Connection {
  readonly #db: Sqlite
  readonly #prepared = new Map<string, Prepared>()

  constructor(db: Sqlite) {
    this.#db = db
  }

  isRead(text: string): boolean {
    return this.#prepare(text).statement.readonly
  }

  run<Row>(text: string, values: readonly SqlValue[]): readonly Row[] {
    const { statement, order } = this.#prepare(text)
    const bound = order.map(at => bindable(values[at]))
    if (statement.reader) return statement.all(...bound) as Row[]
    statement.run(...bound)
    return []
  }

  #prepare(text: string): Prepared {
    let prepared = this.#prepared.get(text)
    if (!prepared) {
      const order: number[] = []
      const source = text.replace(/\$(\d+)/g, (_, position: string) => {
        order.push(Number(position) - 1)
        return '?'
      })
      prepared = { statement: this.#db.prepare<unknown[], unknown>(source).safeIntegers(), order }
      this.#prepared.set(text, prepared)
    }
    return prepared
  }
}

/** Booleans become integers: the driver binds none. */
function bindable(value: SqlValue | undefined): SqlValue {
  if (value === undefined) throw new TypeError('A statement has more parameters than values.')
  return typeof value === 'boolean' ? Number(value) : value
}

const dialect: Dialect = {
  bytes: 'blob',
  lock: '',
  lockFree: '',
  elementsOf: array => `SELECT value FROM json_each(${array})`,
  joinFirst: (table, from) => `CROSS JOIN ${table} ON ${table}.rowid IN (SELECT rowid FROM ${from})`,
  joinEach: (table, where) => `CROSS JOIN ${table} ON ${where}`,
}

/** Within a transaction. */
class TransactionSql implements Sql {
  readonly dialect = dialect
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async query<Row>(text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return this.#connection.run<Row>(text, values)
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return work(this)
  }
}

/**
 * One transaction runs at a time. Reads outside it wait for its end, since they share its connection and would see what
 * it may still undo.
 */
export class SqliteSql implements Sql {
  readonly dialect = dialect
  readonly #connection: Connection
  readonly #writer: Writer
  readonly #within: Sql

  constructor(db: Sqlite, writer: Writer) {
    this.#connection = new Connection(db)
    this.#writer = writer
    this.#within = new TransactionSql(this.#connection)
  }

  async query<Row>(text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    while (this.#writer.active) await this.#writer.active
    if (this.#connection.isRead(text)) return this.#connection.run<Row>(text, values)
    return this.transaction(sql => sql.query<Row>(text, values))
  }

  /** Rejects with a StoreError when another process keeps the database locked for 500 ms. */
  transaction<T>(work: (sql: Sql) => Promise<T>, durability: Durability = 'durable'): Promise<T> {
    return this.#writer.run(() => {
      this.#writer.sync()
      return work(this.#within)
    }, durability)
  }
}
