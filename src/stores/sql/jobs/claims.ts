/**
 * Running jobs: the holder of the lease and the newest fence changes a row, each change in one conditional transaction.
 */
import type { JobStore, Lease } from '../../../core/ports.ts'
import { isRunning, moved } from '../../rules/jobs.ts'
import type { Dialect, SqlValue } from '../sql.ts'
import { announce } from './events.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Claims = Pick<JobStore, 'claim' | 'claimOne' | 'renew' | 'move' | 'end' | 'release' | 'nextAt'>

/** SQL: a job that a provider works on. */
export const RUNNING = "state IN ('queued', 'in_progress')"
/** SQL: a job that has not ended, as the condition of indexes: SQLite does not see that `RUNNING` is part of it. */
export const OPEN = "state IN ('creating', 'queued', 'in_progress')"

// Parameters of claims: $1 owner, $2 time and $3 end of the lease by its clock, $4 time or id, $5 share, $6 limit.
const FREE = '(lease_until IS NULL OR lease_until <= $2)'
const DUE = `${RUNNING} AND next_at <= $4`
const TAKE = 'lease_owner = $1, lease_until = $3, fence = fence + 1'

/** In the index by organization and provider. */
const UNCLAIMED = `${RUNNING} AND lease_owner IS NULL`
/** Two organizations may each have an own provider of one id. */
const HELD_AT = '(SELECT count(*) FROM held WHERE (held.provider, held.owner) IS NOT DISTINCT FROM'
/** So many due rows are read as they come; where there are more, only so many of each pair as may be claimed. */
const MAX_DIRECT_ROWS = 256

/**
 * Claims due jobs of each organization and provider in turn, so that one with many jobs does not delay others. Each
 * gets at most the share that the owner has left. `pairs` are organizations with their providers, each found by the
 * index after the previous one. Rows that another process is claiming are left to it.
 */
const claimOf = ({ joinFirst, lockFree }: Dialect): string => `
  WITH RECURSIVE held AS MATERIALIZED (
    SELECT org_id, provider, owner FROM jobs WHERE lease_owner = $1 AND lease_until > $2
  ), few AS MATERIALIZED (
    SELECT id, org_id, provider, owner, next_at FROM jobs
    WHERE ${OPEN} AND lease_owner IS NULL AND ${DUE} ORDER BY next_at LIMIT ${MAX_DIRECT_ROWS}
  ), pairs AS (
    SELECT * FROM (
      SELECT org_id, provider FROM jobs WHERE ${UNCLAIMED} ORDER BY org_id, provider LIMIT 1
    ) AS first_pair
    WHERE (SELECT count(*) FROM few) = ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT jobs.org_id, jobs.provider FROM pairs ${joinFirst(
      'jobs',
      `jobs AS next WHERE (next.org_id, next.provider) > (pairs.org_id, pairs.provider) AND ${UNCLAIMED}
        ORDER BY next.org_id, next.provider LIMIT 1`,
    )}
  ), free AS (
    SELECT * FROM few WHERE (SELECT count(*) FROM few) < ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT id, jobs.org_id, jobs.provider, owner, next_at FROM pairs ${joinFirst(
      'jobs',
      `jobs AS first WHERE first.org_id = pairs.org_id AND first.provider = pairs.provider AND ${UNCLAIMED} AND ${DUE}
        ORDER BY first.next_at LIMIT $5`,
    )}
    UNION ALL
    SELECT id, org_id, provider, owner, next_at FROM jobs WHERE lease_owner IS NOT NULL AND lease_until <= $2 AND ${DUE}
  ), due AS (
    SELECT *, row_number() OVER (PARTITION BY org_id, provider ORDER BY next_at) AS of_both
    FROM free WHERE ${HELD_AT} (free.provider, free.owner)) < $5
  ), turns AS (
    SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY of_both, next_at) AS turn FROM due
  ), placed AS (
    SELECT id, next_at, turn, row_number() OVER (PARTITION BY provider, owner ORDER BY turn, next_at)
      + ${HELD_AT} (turns.provider, turns.owner)) AS of_provider
    FROM turns WHERE turn + (SELECT count(*) FROM held WHERE held.org_id = turns.org_id) <= $5
  ), chosen AS MATERIALIZED (
    SELECT id FROM jobs WHERE ${DUE} AND ${FREE} AND id IN (
      SELECT id FROM placed WHERE of_provider <= $5 ORDER BY turn, next_at LIMIT $6
    ) ${lockFree}
  )
  UPDATE jobs SET ${TAKE} WHERE id IN (SELECT id FROM chosen) RETURNING *`

const CLAIM_ONE = `UPDATE jobs SET ${TAKE} WHERE id = $4 AND ${RUNNING} AND ${FREE} RETURNING *`

/** The later of two times; the lease's is by its own clock, which is ahead by `$1`. */
const FREE_AT = 'min(CASE WHEN next_at > lease_until - $1 THEN next_at ELSE lease_until - $1 END)'
/** A claimed row is due when its lease ends. The indexes give the first of each without a scan. */
const NEXT_AT = `
  SELECT min(at) AS at FROM (
    SELECT min(next_at) AS at FROM jobs WHERE ${OPEN} AND lease_owner IS NULL
    UNION ALL SELECT ${FREE_AT} FROM jobs WHERE lease_owner IS NOT NULL
    UNION ALL SELECT min(next_at) FROM job_events WHERE state = 'pending' AND lease_owner IS NULL
    UNION ALL SELECT ${FREE_AT} FROM job_events WHERE state = 'pending' AND lease_owner IS NOT NULL
    UNION ALL SELECT min(expires_at) FROM jobs WHERE result_kind IS NOT NULL
  ) AS times`

/** The part of `JobStore` that moves running jobs. */
export function claims(table: JobTable): Claims {
  const claim = claimOf(table.sql.dialect)
  const taken = (text: string, lease: Lease, values: readonly SqlValue[]) =>
    table.write('committed', async ({ sql, job }) => {
      const held = await table.leased(sql, lease)
      return (await sql.query<JobRow>(text, [...held, ...values])).map(job)
    })

  return {
    claim: (lease, share) => taken(claim, lease, [lease.now, share, lease.limit]),

    claimOne: async (id, lease) => (await taken(CLAIM_ONE, lease, [id]))[0],

    renew: (id, fence, until) =>
      table.write('committed', async within => {
        const row = await within.row(id)
        if (!row || !isRunning(row.state)) return false
        return within.update(id, { lease_until: until + table.ahead }, fence)
      }),

    move: (id, fence, change) =>
      table.write('committed', async within => {
        const row = await within.row(id)
        if (!row || !isRunning(row.state)) return false
        const { state, progress } = moved(within.job(row), change)
        const started_at = row.started_at ?? (state === 'in_progress' ? change.at : null)
        const { nextAt: next_at, failures } = change
        const attempts = row.attempts + 1n
        return within.update(
          id,
          { state, progress, started_at, next_at, failures, attempts, lease_owner: null, lease_until: null },
          fence,
        )
      }),

    end: (id, fence, ended, request) =>
      table.write('durable', async within => {
        const before = await within.row(id)
        if (!before || !isRunning(before.state) || before.cost !== null) return false
        const { state, error, result, completedAt, expiresAt, event } = ended
        const blob = result?.kind === 'blob' ? result : undefined
        const changes = {
          ...{ state, progress: 100, error: error && JSON.stringify(error), cost: request.cost ?? 0n },
          ...{ settled_at: completedAt, completed_at: completedAt, expires_at: expiresAt },
          ...{ lease_owner: null, lease_until: null, attempts: before.attempts + 1n },
          ...{ result_kind: result?.kind ?? null, result_blob: blob?.blob ?? null, result_type: blob?.type ?? null },
          ...{ result_bytes: blob?.bytes ?? null, result_etag: blob?.etag ?? null },
          result_url: within.sealed(id, 'result_url', result?.kind === 'url' ? result.url : undefined),
        }
        if (!(await within.update(id, changes, fence))) return false
        await within.ledger.settle(within.job(before).hold, request)
        if (before.callback_url !== null) await announce(within.sql, id, event, completedAt)
        return true
      }),

    release: owner =>
      table.write('committed', async ({ sql }) => {
        for (const name of ['jobs', 'job_events']) {
          await sql.query(`UPDATE ${name} SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = $1`, [owner])
        }
      }),

    async nextAt() {
      const [row] = await table.query<{ at: bigint | null }>(NEXT_AT, [table.ahead])
      return row?.at == null ? undefined : Number(row.at)
    },
  }
}
