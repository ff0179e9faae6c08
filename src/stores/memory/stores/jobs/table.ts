/** The rows of jobs, one by one. */
import { errors } from '../../../../core/error.ts'
import type { Job, Lease } from '../../../../core/ports.ts'
import { isRunning } from '../../../rules/jobs.ts'
import type { JobRow } from '../rows.ts'
import type { Tables } from '../tables.ts'

/** The columns of a row without a claim. */
export const FREE = { leaseOwner: null, leaseUntil: 0 }

/** True where no lease runs at `now`. */
export const isFree = ({ leaseUntil }: { leaseUntil: number }, now: number): boolean => leaseUntil <= now

/** A claimed row is due when its lease ends. */
export const dueAt = ({ nextAt, leaseUntil }: { nextAt: number; leaseUntil: number }): number =>
  Math.max(nextAt, leaseUntil)

/** True until the job has ended. */
export const isOpen = ({ state }: JobRow): boolean => state === 'creating' || isRunning(state)

/** Reads and changes of rows; changes are called within `write`. */
export class JobTable {
  readonly tables: Tables

  constructor(tables: Tables) {
    this.tables = tables
  }

  /** One transaction. Rejects with a GatewayError where the store cannot be written. */
  write<T>(work: () => T): Promise<T> {
    return this.tables.run(work, errors.billingUnavailable)
  }

  get(id: string): JobRow | undefined {
    return this.tables.jobs.get(id)
  }

  filter(test: (row: JobRow) => boolean): JobRow[] {
    return this.tables.jobs.filter(test)
  }

  insert(row: JobRow): void {
    this.tables.jobs.set(row.id, row)
  }

  change(id: string, changes: Partial<JobRow>): Job {
    const row = { ...this.get(id)!, ...changes }
    this.tables.jobs.set(id, row)
    return row
  }

  /** Undefined where the fence is not the newest one, or the job has ended. */
  fenced(id: string, fence: number): JobRow | undefined {
    const row = this.get(id)
    return row?.fence === fence && isRunning(row.state) ? row : undefined
  }

  claim(row: JobRow, { owner, until }: Lease): Job {
    return this.change(row.id, { leaseOwner: owner, leaseUntil: until, fence: row.fence + 1 })
  }

  /** Drops the row and its deliveries. */
  forget(id: string): void {
    const { jobs, events } = this.tables
    jobs.delete(id)
    for (const { eventId, attempt } of events.filter(({ jobId }) => jobId === id))
      events.delete(`${eventId} ${attempt}`)
  }
}
