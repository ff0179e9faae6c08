/** Callbacks for the end of a job: each attempt is a row, claimed as jobs are. */
import type { Delivered, Delivery, EndedJob, Lease } from '../../../core/ports.ts'
import { deliveryOf, type EventRow } from './rows.ts'
import type { JobTable } from './table.ts'

const NO_SECRET = 'callback_url = NULL, callback_secret = NULL'

const UNCLAIMED = "state = 'pending' AND lease_owner IS NULL"
/** So many due rows are read as they come; where there are more, only so many of each organization as may be claimed. */
const MAX_DIRECT_ROWS = 256

/**
 * Claims due deliveries of each organization in turn, at most the share that the owner has left. Ended leases are read
 * by their own index. The index of due rows would pass over all waiting rows.
 */
const CLAIM = `
  WITH RECURSIVE held AS MATERIALIZED (
    SELECT org_id FROM job_events WHERE state = 'pending' AND lease_owner = @owner AND lease_until > @now
  ), few AS MATERIALIZED (
    SELECT rowid AS event, org_id, next_at FROM job_events
    WHERE ${UNCLAIMED} AND next_at <= @now ORDER BY next_at LIMIT ${MAX_DIRECT_ROWS}
  ), organizations AS (
    SELECT * FROM (SELECT org_id FROM job_events WHERE ${UNCLAIMED} ORDER BY org_id LIMIT 1)
    WHERE (SELECT count(*) FROM few) = ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT (SELECT org_id FROM job_events AS next WHERE next.org_id > organizations.org_id AND ${UNCLAIMED}
      ORDER BY next.org_id LIMIT 1)
    FROM organizations WHERE org_id IS NOT NULL
  ), free AS (
    SELECT * FROM few WHERE (SELECT count(*) FROM few) < ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT job_events.rowid, job_events.org_id, next_at FROM organizations CROSS JOIN job_events
    ON job_events.rowid IN (
      SELECT rowid FROM job_events AS first
      WHERE first.org_id = organizations.org_id AND ${UNCLAIMED} AND next_at <= @now ORDER BY next_at LIMIT @share)
    UNION ALL
    SELECT rowid, org_id, next_at FROM job_events INDEXED BY job_events_leased
    WHERE state = 'pending' AND lease_owner IS NOT NULL AND lease_until <= @now AND next_at <= @now
  ), due AS (
    SELECT event, next_at, row_number() OVER (PARTITION BY org_id ORDER BY next_at)
      + (SELECT count(*) FROM held WHERE held.org_id = free.org_id) AS place
    FROM free
  )
  UPDATE job_events SET lease_owner = @owner, lease_until = @until, fence = fence + 1
  WHERE rowid IN (SELECT event FROM due WHERE place <= @share ORDER BY place, next_at LIMIT @limit)
  RETURNING *`

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
      this.#db.prepare<object, EventRow>(CLAIM).all({ owner, now, until, limit, share }).map(deliveryOf),
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
      .prepare(`
        INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
        SELECT @eventId, id, @type, @attempt, 'pending', @at, org_id FROM jobs WHERE id = @jobId`)
      .run({ eventId, jobId, type, attempt, at })
  }

  /** The secret is not needed any more. */
  #endCallback(jobId: string, state: 'delivered' | 'failed', at: number): void {
    this.#db
      .prepare(`UPDATE jobs SET callback_state = @state, callback_delivered_at = iif(@state = 'delivered', @at, NULL),
        ${NO_SECRET} WHERE id = @id`)
      .run({ state, at, id: jobId })
  }
}
