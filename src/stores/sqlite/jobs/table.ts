/** The rows of jobs, one by one. All that writes runs within a transaction. */
import type { Statement } from 'better-sqlite3'
import type { Job } from '../../../core/ports.ts'
import { errors } from '../../../lib/error.ts'
import type { Keyring } from '../../keyring.ts'
import { jobPlace } from '../../rules/jobs.ts'
import { sealText } from '../../sealing.ts'
import type { Sqlite } from '../open.ts'
import type { Durability } from '../write.ts'
import type { Writer } from '../writer.ts'
import { type JobRow, jobOf } from './rows.ts'

type Columns = Readonly<Record<string, unknown>>

/** Reads and changes single rows of `jobs`; changes are called within `write`. */
export class JobTable {
  readonly db: Sqlite
  readonly #writer: Writer
  readonly #keyring: () => Keyring
  readonly #get: Statement<[string], JobRow>

  constructor(db: Sqlite, writer: Writer, keyring: () => Keyring) {
    this.db = db
    this.#writer = writer
    this.#keyring = keyring
    this.#get = db.prepare<[string], JobRow>('SELECT * FROM jobs WHERE id = ?').safeIntegers()
  }

  /** One transaction, or what it rejects with: a GatewayError where the store cannot be written. */
  write<T>(durability: Durability, work: () => T): Promise<T> {
    return this.#writer.run(work, durability, errors.billingUnavailable)
  }

  row(id: string): JobRow | undefined {
    return this.#get.get(id)
  }

  job = (row: JobRow): Job => jobOf(row, this.#keyring)

  read(id: string): Job | undefined {
    const row = this.row(id)
    return row && this.job(row)
  }

  /** Text of a column that is kept sealed. */
  sealed(id: string, column: string, text: string | undefined): string | null {
    return text === undefined ? null : sealText(this.#keyring(), text, jobPlace(id, column))
  }

  insert(row: Columns): void {
    const names = Object.keys(row)
    this.db
      .prepare(`INSERT INTO jobs (${names.join(', ')}) VALUES (${names.map(name => `@${name}`).join(', ')})`)
      .run(row)
  }

  /** False where the fence is not the newest one. */
  update(id: string, row: Columns, fence?: number): boolean {
    const sets = Object.keys(row).map(name => `${name} = @${name}`)
    const fenced = fence === undefined ? '' : ' AND fence = @fence'
    const change = this.db.prepare(`UPDATE jobs SET ${sets.join(', ')} WHERE id = @id${fenced}`)
    return change.run({ ...row, id, ...(fence !== undefined && { fence }) }).changes > 0
  }

  forget(id: string): void {
    this.db.prepare('DELETE FROM job_events WHERE job_id = ?').run(id)
    this.db.prepare('DELETE FROM jobs WHERE id = ?').run(id)
  }
}
