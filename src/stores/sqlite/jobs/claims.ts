/** Jobs while they run: who has a lease and its newest fence moves a row, each move one conditional transaction. */
import type { JobStore, Lease } from '../../../core/ports.ts'
import { isRunning, type LedgerTransaction, moved } from '../../rules/jobs.ts'
import type { JobEvents } from './events.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Claims = Pick<JobStore, 'claim' | 'claimOne' | 'renew' | 'move' | 'end' | 'release' | 'nextAt'>

interface Claim extends Lease {
  readonly id?: string
}

export const RUNNING = "state IN ('queued', 'in_progress')"
const FREE = '(lease_until IS NULL OR lease_until <= @now)'
const TAKE = 'UPDATE jobs SET lease_owner = @owner, lease_until = @until, fence = fence + 1 WHERE'

/** Of each organization one after another, so that one with many jobs does not keep those of others waiting. */
const CLAIM = `
  ${TAKE} id IN (
    SELECT id FROM (
      SELECT id, next_at, row_number() OVER (PARTITION BY org_id ORDER BY next_at) AS place
      FROM jobs WHERE ${RUNNING} AND next_at <= @now AND ${FREE}
    ) ORDER BY place, next_at LIMIT @limit
  ) RETURNING *`

/** What somebody has claimed is due when the lease is over. */
const NEXT_AT = `
  SELECT min(at) FROM (
    SELECT min(max(next_at, coalesce(lease_until, 0))) AS at FROM jobs
    WHERE state IN ('creating', 'queued', 'in_progress')
    UNION ALL SELECT min(max(next_at, coalesce(lease_until, 0))) FROM job_events WHERE state = 'pending'
    UNION ALL SELECT min(expires_at) FROM jobs WHERE result_kind IS NOT NULL
  )`

export function claims(table: JobTable, events: JobEvents, ledger: LedgerTransaction): Claims {
  const { db } = table
  const claim = db.prepare<Claim, JobRow>(CLAIM).safeIntegers()
  const claimOne = db.prepare<Claim, JobRow>(`${TAKE} id = @id AND ${RUNNING} AND ${FREE} RETURNING *`).safeIntegers()
  const nextAt = db.prepare<[], number | null>(NEXT_AT).pluck()

  return {
    claim: lease => table.write('committed', () => claim.all(lease).map(table.job)),

    claimOne: (id, lease) =>
      table.write('committed', () => {
        const row = claimOne.get({ ...lease, id })
        return row && table.job(row)
      }),

    renew: (id, fence, until) => table.write('committed', () => table.update(id, { lease_until: until }, fence)),

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

    release: (owner, now) =>
      table.write('committed', () => {
        db.prepare('UPDATE jobs SET lease_until = ? WHERE lease_owner = ? AND lease_until > ?').run(now, owner, now)
        events.release(owner, now)
      }),

    async nextAt() {
      return nextAt.get() ?? undefined
    },
  }
}
