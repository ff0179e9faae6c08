/** Callbacks for the end of a job: each attempt is a row, claimed as jobs are. */
import type { Delivered, Delivery, EndedJob, Lease } from '../../../core/ports.ts'
import { deliveryOf, type EventRow } from './rows.ts'
import type { JobTable } from './table.ts'

const NO_SECRET = 'callback_url = NULL, callback_secret = NULL'

/** The rows of `job_events`. Each change is one transaction, except where it says that it is within one. */
export class JobEvents {
  readonly #table: JobTable

  constructor(table: JobTable) {
    this.#table = table
  }

  get #db() {
    return this.#table.db
  }

  /** Within a transaction: the first attempt is due. */
  announce(jobId: string, { id, type }: EndedJob['event'], at: number): void {
    this.#add(id, jobId, type, 1, at)
  }

  /** Within a transaction. */
  release(owner: string): void {
    this.#db.prepare('UPDATE job_events SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = ?').run(owner)
  }

  claim({ owner, now, until, limit }: Lease, share: number): Promise<Delivery[]> {
    return this.#table.write('committed', () =>
      this.#db
        .prepare<object, EventRow>(`
          WITH held AS (
            SELECT org_id, count(*) AS many FROM job_events JOIN jobs ON jobs.id = job_id
            WHERE job_events.state = 'pending' AND job_events.lease_owner = @owner AND job_events.lease_until > @now
            GROUP BY org_id
          ), due AS (
            SELECT job_events.rowid AS event, job_events.next_at AS at, coalesce(many, 0)
              + row_number() OVER (PARTITION BY jobs.org_id ORDER BY job_events.next_at) AS place
            FROM job_events JOIN jobs ON jobs.id = job_id LEFT JOIN held ON held.org_id = jobs.org_id
            WHERE job_events.state = 'pending' AND job_events.next_at <= @now
              AND (job_events.lease_until IS NULL OR job_events.lease_until <= @now)
          )
          UPDATE job_events SET lease_owner = @owner, lease_until = @until, fence = fence + 1
          WHERE rowid IN (SELECT event FROM due WHERE place <= @share ORDER BY place, at LIMIT @limit)
          RETURNING *`)
        .all({ owner, now, until, limit, share })
        .map(deliveryOf),
    )
  }

  deliver({ eventId, jobId, type, attempt, fence }: Delivery, delivered: Delivered): Promise<boolean> {
    const { state, triedAt, status, response, error, headers, bodySha256, nextAt } = delivered
    return this.#table.write('committed', () => {
      const { changes } = this.#db
        .prepare(`
          UPDATE job_events SET state = @state, tried_at = @triedAt, status = @status, response_body = @response,
            error = @error, request_headers = @headers, body_sha256 = @bodySha256,
            delivered_at = iif(@state = 'delivered', @triedAt, NULL), lease_owner = NULL, lease_until = NULL
          WHERE event_id = @eventId AND attempt = @attempt AND fence = @fence AND state = 'pending'`)
        .run({ state, triedAt, status, response, error, headers, bodySha256, eventId, attempt, fence })
      if (changes === 0) return false
      if (state === 'retrying') this.#add(eventId, jobId, type, attempt + 1, nextAt)
      else this.#endCallback(jobId, state, triedAt)
      return true
    })
  }

  postpone({ eventId, attempt, fence }: Delivery, nextAt: number): Promise<boolean> {
    return this.#table.write('committed', () => {
      const { changes } = this.#db
        .prepare(`
          UPDATE job_events SET next_at = ?, lease_owner = NULL, lease_until = NULL
          WHERE event_id = ? AND attempt = ? AND fence = ? AND state = 'pending'`)
        .run(nextAt, eventId, attempt, fence)
      return changes > 0
    })
  }

  async of(jobId: string): Promise<Delivery[]> {
    return this.#db
      .prepare<[string], EventRow>('SELECT * FROM job_events WHERE job_id = ? ORDER BY type, attempt')
      .all(jobId)
      .map(deliveryOf)
  }

  redeliver(eventId: string, now: number): Promise<boolean> {
    return this.#table.write('committed', () => {
      const last = this.#db
        .prepare<[string], EventRow>(`
          SELECT job_events.* FROM job_events JOIN jobs ON jobs.id = job_id
          WHERE event_id = ? AND callback_secret IS NOT NULL ORDER BY attempt DESC LIMIT 1`)
        .get(eventId)
      if (!last) return false
      if (last.state === 'pending') {
        this.#db
          .prepare('UPDATE job_events SET next_at = ? WHERE event_id = ? AND attempt = ?')
          .run(now, eventId, last.attempt)
      } else {
        this.#add(eventId, last.job_id, last.type, last.attempt + 1, now)
        this.#db.prepare("UPDATE jobs SET callback_state = 'pending' WHERE id = ?").run(last.job_id)
      }
      return true
    })
  }

  #add(eventId: string, jobId: string, type: string, attempt: number, at: number): void {
    this.#db
      .prepare(
        "INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at) VALUES (?, ?, ?, ?, 'pending', ?)",
      )
      .run(eventId, jobId, type, attempt, at)
  }

  /** The secret is not needed any more. */
  #endCallback(jobId: string, state: 'delivered' | 'failed', at: number): void {
    this.#db
      .prepare(`UPDATE jobs SET callback_state = @state, callback_delivered_at = iif(@state = 'delivered', @at, NULL),
        ${NO_SECRET} WHERE id = @id`)
      .run({ state, at, id: jobId })
  }
}
