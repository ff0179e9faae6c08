/** Callbacks for the end of a job: each attempt is a row, claimed as jobs are. */
import type { EndedJob, JobStore } from '../../../core/ports.ts'
import { type Dialect, first, type Sql } from '../sql.ts'
import { deliveryOf, type EventRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Deliveries = Pick<JobStore, 'claimDeliveries' | 'deliver' | 'postpone' | 'deliveries' | 'redeliver'>

const UNCLAIMED = "state = 'pending' AND lease_owner IS NULL"
/** So many due rows are read as they come; where there are more, only so many of each organization as may be claimed. */
const MAX_DIRECT_ROWS = 256

/**
 * Claims due deliveries of each organization in turn, at most the share that the owner has left. The index of due rows
 * would pass over all waiting rows to find ended leases: a sum keeps SQLite from using it for these.
 */
const claimOf = ({ joinFirst, lockFree }: Dialect): string => `
  WITH RECURSIVE held AS MATERIALIZED (
    SELECT org_id FROM job_events WHERE state = 'pending' AND lease_owner = $1 AND lease_until > $2
  ), few AS MATERIALIZED (
    SELECT rowid AS event, org_id, next_at FROM job_events
    WHERE ${UNCLAIMED} AND next_at <= $4 ORDER BY next_at LIMIT ${MAX_DIRECT_ROWS}
  ), organizations AS (
    SELECT * FROM (SELECT org_id FROM job_events WHERE ${UNCLAIMED} ORDER BY org_id LIMIT 1) AS first_one
    WHERE (SELECT count(*) FROM few) = ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT (SELECT org_id FROM job_events AS next WHERE next.org_id > organizations.org_id AND ${UNCLAIMED}
      ORDER BY next.org_id LIMIT 1)
    FROM organizations WHERE org_id IS NOT NULL
  ), free AS (
    SELECT * FROM few WHERE (SELECT count(*) FROM few) < ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT job_events.rowid, job_events.org_id, next_at FROM organizations ${joinFirst(
      'job_events',
      `job_events AS first WHERE first.org_id = organizations.org_id AND ${UNCLAIMED} AND next_at <= $4
        ORDER BY next_at LIMIT $5`,
    )}
    UNION ALL
    SELECT rowid, org_id, next_at FROM job_events
    WHERE state = 'pending' AND lease_owner > '' AND lease_until <= $2 AND next_at + 0 <= $4
  ), due AS (
    SELECT event, next_at, row_number() OVER (PARTITION BY org_id ORDER BY next_at)
      + (SELECT count(*) FROM held WHERE held.org_id = free.org_id) AS place
    FROM free
  ), chosen AS MATERIALIZED (
    SELECT rowid AS event FROM job_events
    WHERE state = 'pending' AND next_at <= $4 AND (lease_until IS NULL OR lease_until <= $2)
      AND rowid IN (SELECT event FROM due WHERE place <= $5 ORDER BY place, next_at LIMIT $6) ${lockFree}
  )
  UPDATE job_events SET lease_owner = $1, lease_until = $3, fence = fence + 1
  WHERE rowid IN (SELECT event FROM chosen) RETURNING *`

const DELIVER = `
  UPDATE job_events SET state = $4, tried_at = CAST($5 AS bigint), status = $6, response_body = $7, error = $8,
    request_headers = $9, body_sha256 = $10, delivered_at = CASE WHEN $4 = 'delivered' THEN CAST($5 AS bigint) END,
    lease_owner = NULL, lease_until = NULL
  WHERE event_id = $1 AND attempt = $2 AND fence = $3 AND state = 'pending' RETURNING event_id`
const POSTPONE = `
  UPDATE job_events SET next_at = $4, lease_owner = NULL, lease_until = NULL
  WHERE event_id = $1 AND attempt = $2 AND fence = $3 AND state = 'pending' RETURNING event_id`
/** The secret is not needed any more. */
const END_CALLBACK = `
  UPDATE jobs SET callback_state = $2, callback_delivered_at = $3, callback_url = NULL, callback_secret = NULL
  WHERE id = $1`

/** The next attempt. An event may be of a job or of an alert. */
const RETRY = `
  INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
  SELECT event_id, job_id, type, attempt + 1, 'pending', CAST($3 AS bigint), org_id FROM job_events
  WHERE event_id = $1 AND attempt = $2`

/** Within a transaction: the first attempt is due. */
export const announce = (sql: Sql, jobId: string, { id, type }: EndedJob['event'], at: number): Promise<unknown> =>
  sql.query(
    `INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
      SELECT $1, id, $3, 1, 'pending', CAST($4 AS bigint), org_id FROM jobs WHERE id = $2`,
    [id, jobId, type, at],
  )

/** The part of `JobStore` that tells ends. */
export function deliveries(table: JobTable): Deliveries {
  const claim = claimOf(table.sql.dialect)
  return {
    claimDeliveries: (lease, share) =>
      table.write('committed', async ({ sql }) => {
        const values = [...(await table.leased(sql, lease)), lease.now, share, lease.limit]
        return (await sql.query<EventRow>(claim, values)).map(deliveryOf)
      }),

    deliver: (delivery, { state, triedAt, status, response, error, headers, bodySha256, nextAt }) =>
      table.write('committed', async within => {
        const { eventId, jobId, attempt, fence } = delivery
        // The job comes before its events wherever a transaction changes both.
        await within.row(jobId)
        const sent = [state, triedAt, status, response, error, headers, bodySha256]
        if ((await within.sql.query(DELIVER, [eventId, attempt, fence, ...sent])).length === 0) return false
        if (state === 'retrying') await within.sql.query(RETRY, [eventId, attempt, nextAt])
        else await within.sql.query(END_CALLBACK, [jobId, state, state === 'delivered' ? triedAt : null])
        return true
      }),

    async postpone({ eventId, attempt, fence }, nextAt) {
      return table.write('committed', async ({ sql }) => {
        return (await sql.query(POSTPONE, [eventId, attempt, fence, nextAt])).length > 0
      })
    },

    async deliveries(jobId) {
      const text = 'SELECT * FROM job_events WHERE job_id = $1 ORDER BY type, attempt'
      return (await table.query<EventRow>(text, [jobId])).map(deliveryOf)
    },

    redeliver: (eventId, now) =>
      table.write('committed', async within => {
        const { sql } = within
        const newest = 'SELECT * FROM job_events WHERE event_id = $1 ORDER BY attempt DESC LIMIT 1'
        const known = await first<EventRow>(sql, newest, [eventId])
        const job = known && (await within.row(known.job_id))
        if (!job || job.callback_secret === null) return false
        const last = deliveryOf((await first<EventRow>(sql, newest, [eventId]))!)
        if (last.state === 'pending') {
          const text = 'UPDATE job_events SET next_at = $1 WHERE event_id = $2 AND attempt = $3'
          await sql.query(text, [now, eventId, last.attempt])
        } else {
          await sql.query(RETRY, [eventId, last.attempt, now])
          await sql.query("UPDATE jobs SET callback_state = 'pending' WHERE id = $1", [job.id])
        }
        return true
      }),
  }
}
