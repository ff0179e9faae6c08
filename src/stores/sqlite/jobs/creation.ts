/** Jobs until their provider has them: in the state `creating`, with a hold that belongs to this process. */
import type { EndedJob, Job, JobError, JobStore, NewJob } from '../../../core/ports.ts'
import { IDEMPOTENT_MS, type LedgerTransaction, startProgress } from '../../rules/jobs.ts'
import type { JobEvents } from './events.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Creation = Pick<JobStore, 'begin' | 'start' | 'drop' | 'interrupt' | 'interruptLost'>

/** The list of states is that of the index. */
const LOST = `
  SELECT * FROM jobs WHERE state IN ('creating', 'queued', 'in_progress') AND state = 'creating'
    AND NOT EXISTS (SELECT 1 FROM holds WHERE id = hold_id)`

/** The part of `JobStore` that creates jobs, and ends those that no provider has. */
export function creation(table: JobTable, events: JobEvents, ledger: LedgerTransaction): Creation {
  const interruptRow = (row: JobRow, error: JobError, event: EndedJob['event'], now: number): void => {
    ledger.voidWithin(table.job(row).hold)
    const ends = { completed_at: now, settled_at: now, cost: 0n, progress: 100 }
    table.update(row.id, { state: 'failed', error: JSON.stringify(error), ...ends })
    if (row.callback_url !== null) events.announce(row.id, event, now)
  }

  return {
    begin: (job, target, holdRequest) =>
      table.write('committed', () => {
        const { request, principal } = holdRequest
        const { projectId } = principal
        const before = table.row(job.id)
        if (before) ledger.voidWithin(table.job(before).hold)
        else if (job.idempotency !== null) {
          const existing = sameKey(table, projectId, job)
          if (existing) return { existing }
        }
        const hold = ledger.holdWithin(holdRequest)
        if ('exhausted' in hold) {
          if (before) table.forget(job.id)
          return hold
        }
        const at = {
          ...{ model: request.model, provider: request.provider, mapping: target.mapping, region: target.region },
          ...{ credential: target.credential, wire: target.wire, owner: target.owner },
          ...{ price: target.price, discount: target.discount },
          ...{ hold_id: hold.id, amount: hold.amount, funds: hold.funds, budgets: hold.budgets },
        }
        if (before) {
          table.update(job.id, at)
          return hold
        }
        const { callback } = job
        table.insert({
          ...{ id: job.id, kind: job.kind, log_id: request.id, request_id: request.requestId },
          ...{ org_id: principal.orgId, project_id: projectId, key_id: principal.keyId, source: job.source },
          session: job.session,
          ...{ endpoint: request.endpoint, requested_model: request.requestedModel, params: job.params },
          ...{ state: 'creating', idempotency: job.idempotency, request_hash: job.requestHash },
          ...{ created_at: job.createdAt, deadline_at: job.deadlineAt, next_at: job.deadlineAt },
          callback_url: table.sealed(job.id, 'callback_url', callback?.url),
          callback_secret: table.sealed(job.id, 'callback_secret', callback?.secret),
          callback_state: callback ? 'pending' : 'none',
          ...at,
        })
        return hold
      }),

    start: (id, { upstreamId, state, progress, nextAt }) =>
      table.write('durable', () => {
        const row = table.row(id)
        if (row?.state !== 'creating') return undefined
        const started_at = state === 'in_progress' ? row.created_at : null
        const initial = startProgress(progress)
        table.update(id, { upstream_id: upstreamId, state, progress: initial, next_at: nextAt, started_at })
        ledger.handOver(row.hold_id)
        return table.read(id)
      }),

    drop: id =>
      table.write('committed', () => {
        const row = table.row(id)
        if (row?.state !== 'creating') return
        ledger.voidWithin(table.job(row).hold)
        table.forget(id)
      }),

    interrupt: (id, error, event, now) =>
      table.write('durable', () => {
        const row = table.row(id)
        if (row?.state === 'creating') interruptRow(row, error, event, now)
      }),

    interruptLost(error, event, now) {
      // Nothing is written while there is nothing to do.
      if (!table.db.prepare<[], JobRow>(LOST).get()) return Promise.resolve(0)
      return table.write('durable', () => {
        const rows = table.db.prepare<[], JobRow>(LOST).safeIntegers().all()
        for (const row of rows) interruptRow(row, error, event(row.id), now)
        return rows.length
      })
    },
  }
}

/** The job of this idempotency key; one that is older than a day gives the key up. */
function sameKey(table: JobTable, projectId: string, { idempotency, createdAt }: NewJob): Job | undefined {
  const same = table.db
    .prepare<[string, string | null], JobRow>('SELECT * FROM jobs WHERE project_id = ? AND idempotency = ?')
    .safeIntegers()
    .get(projectId, idempotency)
  if (!same) return undefined
  if (Number(same.created_at) > createdAt - IDEMPOTENT_MS) return table.job(same)
  table.update(same.id, { idempotency: null })
  return undefined
}
