/** The rows of jobs, one by one, and the transactions that change them together with money. */
import type { Exhausted, Hold, HoldRequest, Job, Lease, RequestRow } from '../../../core/ports.ts'
import type { Keyring } from '../../keyring.ts'
import { jobPlace } from '../../rules/jobs.ts'
import { sealText } from '../../sealing.ts'
import { type Durability, explained, first, type Sql, type SqlValue } from '../sql.ts'
import { type JobRow, jobOf } from './rows.ts'

type Columns = Readonly<Record<string, SqlValue>>

/** The ledger within a transaction that is open already. */
export interface JobLedger {
  hold(holdRequest: HoldRequest): Promise<Hold | Exhausted>
  void(hold: Hold): Promise<void>
  settle(hold: Hold, row: RequestRow): Promise<void>
  /** Assigns the hold to the jobs. */
  handOver(holdId: string): Promise<void>
}

/** Keys, money and time for stored jobs. */
export interface JobTableOptions {
  readonly keyring: () => Keyring
  readonly ledger: (sql: Sql) => JobLedger
  /** Reads the clock that measures leases, Unix milliseconds; the caller's by default. */
  readonly clock?: ((sql: Sql) => Promise<number>) | undefined
}

/** Reads rows of `jobs` and opens transactions. What the database rejects with becomes `billing_unavailable`. */
export class JobTable {
  readonly sql: Sql
  readonly #options: JobTableOptions
  #ahead = 0

  constructor(sql: Sql, options: JobTableOptions) {
    this.sql = sql
    this.#options = options
  }

  /** Time in milliseconds by which the clock of leases was ahead of the caller's when it was last read. */
  get ahead(): number {
    return this.#ahead
  }

  /** Returns the owner of a lease, and its begin and end by the clock of leases. */
  async leased(sql: Sql, { owner, now, until }: Lease): Promise<readonly SqlValue[]> {
    const { clock } = this.#options
    this.#ahead = clock ? (await clock(sql)) - now : 0
    return [owner, now + this.#ahead, until + this.#ahead]
  }

  query<Row>(text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return explained(() => this.sql.query<Row>(text, values))
  }

  write<T>(durability: Durability, work: (within: JobTransaction) => Promise<T>): Promise<T> {
    return explained(() => this.sql.transaction(sql => work(new JobTransaction(sql, this.#options)), durability))
  }

  job = (row: JobRow): Job => jobOf(row, this.#options.keyring)

  /** The job of the first row. */
  async find(text: string, values: readonly SqlValue[]): Promise<Job | undefined> {
    const [row] = await this.query<JobRow>(text, values)
    return row && this.job(row)
  }
}

/** Changes single rows of `jobs` within a transaction. */
export class JobTransaction {
  readonly sql: Sql
  readonly ledger: JobLedger
  readonly #keyring: () => Keyring

  constructor(sql: Sql, { keyring, ledger }: JobTableOptions) {
    this.sql = sql
    this.ledger = ledger(sql)
    this.#keyring = keyring
  }

  /** No other transaction changes it before the end of this one. */
  row(id: string): Promise<JobRow | undefined> {
    return first<JobRow>(this.sql, `SELECT * FROM jobs WHERE id = $1 ${this.sql.dialect.lock}`, [id])
  }

  job = (row: JobRow): Job => jobOf(row, this.#keyring)

  async read(id: string): Promise<Job | undefined> {
    const row = await this.row(id)
    return row && this.job(row)
  }

  /** Text of a column that is kept sealed. */
  sealed(id: string, column: string, text: string | undefined): string | null {
    return text === undefined ? null : sealText(this.#keyring(), text, jobPlace(id, column))
  }

  /** False where a job has one of its unique values. */
  async insert(row: Columns): Promise<boolean> {
    const names = Object.keys(row)
    const places = names.map((_, at) => `$${at + 1}`)
    const text = `INSERT INTO jobs (${names.join(', ')}) VALUES (${places.join(', ')}) ON CONFLICT DO NOTHING RETURNING id`
    return (await this.sql.query(text, Object.values(row))).length > 0
  }

  /** False where the fence is not the newest one. */
  async update(id: string, row: Columns, fence?: number): Promise<boolean> {
    const sets = Object.keys(row).map((name, at) => `${name} = $${at + 3}`)
    const text = `UPDATE jobs SET ${sets.join(', ')} WHERE id = $1 AND fence = coalesce($2, fence) RETURNING id`
    return (await this.sql.query(text, [id, fence ?? null, ...Object.values(row)])).length > 0
  }

  async forget(id: string): Promise<void> {
    await this.sql.query('DELETE FROM job_events WHERE job_id = $1', [id])
    await this.sql.query('DELETE FROM jobs WHERE id = $1', [id])
  }
}
