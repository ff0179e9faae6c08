/**
 * Running jobs: the holder of the lease and the newest fence changes a row, each change in one conditional transaction.
 */
import type { JobStore, Lease } from '../../../core/ports.ts'
import { isRunning, type LedgerTransaction, moved } from '../../rules/jobs.ts'
import type { JobEvents } from './events.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Claims = Pick<JobStore, 'claim' | 'claimOne' | 'renew' | 'move' | 'end' | 'release' | 'nextAt'>

interface Claim extends Lease {
  readonly id?: string
  readonly share?: number
}

/** SQL: a job that a provider works on. */
export const RUNNING = "state IN ('queued', 'in_progress')"
/** The condition of the index of jobs that have not ended: SQLite does not see that `RUNNING` is part of it. */
const INDEXED = "state IN ('creating', 'queued', 'in_progress')"
const FREE = '(lease_until IS NULL OR lease_until <= @now)'
const TAKE = 'UPDATE jobs SET lease_owner = @owner, lease_until = @until, fence = fence + 1 WHERE'

const DUE = `${RUNNING} AND next_at <= @now`
/** In the index by organization and provider. */
const UNCLAIMED = `${RUNNING} AND lease_owner IS NULL`
/** Two organizations may each have an own provider of one id. */
const HELD_AT = '(SELECT count(*) FROM held WHERE (held.provider, held.owner) IS'
/** So many due rows are read as they come; where there are more, only so many of each pair as may be claimed. */
const MAX_DIRECT_ROWS = 256

/**
 * Claims due jobs of each organization and provider in turn, so that one with many jobs does not delay others. Each
 * gets at most the share that the owner has left. `pairs` are organizations with their providers, each found by the
 * index after the previous one.
 */
const CLAIM = `
  WITH RECURSIVE held AS MATERIALIZED (
    SELECT org_id, provider, owner FROM jobs WHERE lease_owner = @owner AND lease_until > @now
  ), few AS MATERIALIZED (
    SELECT id, org_id, provider, owner, next_at FROM jobs
    WHERE ${INDEXED} AND lease_owner IS NULL AND ${DUE} ORDER BY next_at LIMIT ${MAX_DIRECT_ROWS}
  ), pairs AS (
    SELECT * FROM (SELECT org_id, provider FROM jobs WHERE ${UNCLAIMED} ORDER BY org_id, provider LIMIT 1)
    WHERE (SELECT count(*) FROM few) = ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT jobs.org_id, jobs.provider FROM pairs CROSS JOIN jobs ON jobs.rowid = coalesce(
      (SELECT rowid FROM jobs AS next WHERE next.org_id = pairs.org_id AND next.provider > pairs.provider AND ${UNCLAIMED}
        ORDER BY next.provider LIMIT 1),
      (SELECT rowid FROM jobs AS next WHERE next.org_id > pairs.org_id AND ${UNCLAIMED}
        ORDER BY next.org_id, next.provider LIMIT 1))
  ), free AS (
    SELECT * FROM few WHERE (SELECT count(*) FROM few) < ${MAX_DIRECT_ROWS}
    UNION ALL
    SELECT id, jobs.org_id, jobs.provider, owner, next_at FROM pairs CROSS JOIN jobs ON jobs.rowid IN (
      SELECT rowid FROM jobs AS first
      WHERE first.org_id = pairs.org_id AND first.provider = pairs.provider AND ${UNCLAIMED} AND ${DUE}
      ORDER BY first.next_at LIMIT @share)
    UNION ALL
    SELECT id, org_id, provider, owner, next_at FROM jobs WHERE lease_owner IS NOT NULL AND lease_until <= @now AND ${DUE}
  ), due AS (
    SELECT *, row_number() OVER (PARTITION BY org_id, provider ORDER BY next_at) AS of_both
    FROM free WHERE ${HELD_AT} (free.provider, free.owner)) < @share
  ), turns AS (
    SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY of_both, next_at) AS turn FROM due
  ), placed AS (
    SELECT id, next_at, turn, row_number() OVER (PARTITION BY provider, owner ORDER BY turn, next_at)
      + ${HELD_AT} (turns.provider, turns.owner)) AS of_provider
    FROM turns WHERE turn + (SELECT count(*) FROM held WHERE held.org_id = turns.org_id) <= @share
  )
  ${TAKE} id IN (
    SELECT id FROM placed WHERE of_provider <= @share ORDER BY turn, next_at LIMIT @limit
  ) RETURNING *`

/** A claimed row is due when its lease ends. The indexes give the first of each without a scan. */
const NEXT_AT = `
  SELECT min(at) FROM (
    SELECT min(next_at) AS at FROM jobs WHERE state IN ('creating', 'queued', 'in_progress') AND lease_owner IS NULL
    UNION ALL SELECT min(max(next_at, lease_until)) FROM jobs WHERE lease_owner IS NOT NULL
    UNION ALL SELECT min(next_at) FROM job_events WHERE state = 'pending' AND lease_owner IS NULL
    UNION ALL SELECT min(max(next_at, lease_until)) FROM job_events WHERE state = 'pending' AND lease_owner IS NOT NULL
    UNION ALL SELECT min(expires_at) FROM jobs WHERE result_kind IS NOT NULL
  )`

/** The part of `JobStore` that moves running jobs. */
export function claims(table: JobTable, events: JobEvents, ledger: LedgerTransaction): Claims {
  const { db } = table
  const claim = db.prepare<Claim, JobRow>(CLAIM).safeIntegers()
  const claimOne = db.prepare<Claim, JobRow>(`${TAKE} id = @id AND ${RUNNING} AND ${FREE} RETURNING *`).safeIntegers()
  const nextAt = db.prepare<[], number | null>(NEXT_AT).pluck()

  const isOpen = (id: string): boolean => isRunning(table.row(id)?.state ?? 'failed')

  return {
    claim: (lease, share) => table.write('committed', () => claim.all({ ...lease, share }).map(table.job)),

    claimOne: (id, lease) =>
      table.write('committed', () => {
        const row = claimOne.get({ ...lease, id })
        return row && table.job(row)
      }),

    renew: (id, fence, until) =>
      table.write('committed', () => isOpen(id) && table.update(id, { lease_until: until }, fence)),

    move: (id, fence, change) =>
      table.write('committed', () => {
        const row = table.row(id)
        if (!row || !isRunning(row.state)) return false
        const { state, progress } = moved(table.job(row), change)
        const started_at = row.started_at ?? (state === 'in_progress' ? change.at : null)
        const { nextAt: next_at, failures } = change
        const attempts = row.attempts + 1n
        return table.update(
          id,
          { state, progress, started_at, next_at, failures, attempts, lease_owner: null, lease_until: null },
          fence,
        )
      }),

    end: (id, fence, ended, request) =>
      table.write('durable', () => {
        const before = table.row(id)
        if (!before || !isRunning(before.state) || before.cost !== null) return false
        const { state, error, result, completedAt, expiresAt, event } = ended
        const blob = result?.kind === 'blob' ? result : undefined
        const changes = {
          ...{ state, progress: 100, error: error && JSON.stringify(error), cost: request.cost ?? 0n },
          ...{ settled_at: completedAt, completed_at: completedAt, expires_at: expiresAt },
          ...{ lease_owner: null, lease_until: null, attempts: before.attempts + 1n },
          ...{ result_kind: result?.kind ?? null, result_blob: blob?.blob ?? null, result_type: blob?.type ?? null },
          ...{ result_bytes: blob?.bytes ?? null, result_etag: blob?.etag ?? null },
          result_url: table.sealed(id, 'result_url', result?.kind === 'url' ? result.url : undefined),
        }
        if (!table.update(id, changes, fence)) return false
        ledger.settleWithin(table.job(before).hold, request)
        if (before.callback_url !== null) events.announce(id, event, completedAt)
        return true
      }),

    release: owner =>
      table.write('committed', () => {
        db.prepare('UPDATE jobs SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = ?').run(owner)
        events.release(owner)
      }),

    async nextAt() {
      return nextAt.get() ?? undefined
    },
  }
}
