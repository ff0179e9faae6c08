/** Jobs until their provider has them: a row and a hold come, and go, together. */
import type { EndedJob, HoldRequest, JobError, JobStore, NewJob } from '../../../../core/ports.ts'
import { IDEMPOTENT_MS, type LedgerTransaction, startProgress } from '../../../rules/jobs.ts'
import type { JobRow } from '../rows.ts'
import { announce } from './events.ts'
import { FREE, type JobTable } from './table.ts'

type Creation = Pick<JobStore, 'begin' | 'start' | 'drop' | 'interrupt' | 'interruptLost'>

/** What a row has before its provider has the job. */
const BEGUN = {
  ...({ state: 'creating', upstreamId: null, progress: null, error: null, cost: null, result: null } as const),
  ...{ startedAt: null, completedAt: null, expiresAt: null, deletedAt: null },
  ...{ attempts: 0, failures: 0, fence: 0, ...FREE },
}

/** The part of `JobStore` that creates jobs, and ends those that no provider has. */
export function creation(table: JobTable, ledger: LedgerTransaction): Creation {
  const interrupt = (row: JobRow, error: JobError, event: EndedJob['event'], now: number) => {
    ledger.voidWithin(row.hold)
    table.change(row.id, { state: 'failed', error, completedAt: now, cost: 0n, progress: 100 })
    if (row.callback) announce(table, row.id, event, now)
  }
  /** The job that has the idempotency key. One that has had it for long enough loses it. */
  const withSameKey = ({ idempotency, createdAt }: NewJob, projectId: string): JobRow | undefined => {
    if (idempotency === null) return undefined
    const [same] = table.filter(row => row.projectId === projectId && row.idempotency === idempotency)
    if (!same || same.createdAt > createdAt - IDEMPOTENT_MS) return same
    table.change(same.id, { idempotency: null })
    return undefined
  }

  return {
    begin: (job, target, asked) =>
      table.write(() => {
        const before = table.get(job.id)
        if (before) ledger.voidWithin(before.hold)
        const existing = before ? undefined : withSameKey(job, asked.principal.projectId)
        if (existing) return { existing }
        const hold = ledger.holdWithin(asked)
        if ('exhausted' in hold) {
          if (before) table.forget(job.id)
          return hold
        }
        const at = { model: asked.request.model!, provider: asked.request.provider!, hold }
        if (before) table.change(job.id, { ...target, ...at })
        else table.insert({ ...job, ...target, ...at, ...requestOf(asked), ...BEGUN, nextAt: job.deadlineAt })
        return hold
      }),
    start: (id, started) =>
      table.write(() => {
        const row = table.get(id)
        if (row?.state !== 'creating') return undefined
        ledger.handOver(row.hold.id)
        const progress = startProgress(started.progress)
        const startedAt = started.state === 'in_progress' ? row.createdAt : null
        return table.change(id, { ...started, progress, startedAt })
      }),
    drop: id =>
      table.write(() => {
        const row = table.get(id)
        if (row?.state !== 'creating') return
        ledger.voidWithin(row.hold)
        table.forget(id)
      }),
    interrupt: (id, error, event, now) =>
      table.write(() => {
        const row = table.get(id)
        if (row?.state === 'creating') interrupt(row, error, event, now)
      }),
    interruptLost: (error, event, now) =>
      table.write(() => {
        const { holds } = table.tables
        const lost = table.filter(({ state, hold }) => state === 'creating' && !holds.get(hold.id))
        for (const row of lost) interrupt(row, error, event(row.id), now)
        return lost.length
      }),
  }
}

function requestOf({ request, principal }: HoldRequest) {
  const { id: logId, requestId, endpoint, requestedModel } = request
  const { orgId, projectId, keyId } = principal
  return { logId, requestId, endpoint, requestedModel, orgId, projectId, keyId }
}
