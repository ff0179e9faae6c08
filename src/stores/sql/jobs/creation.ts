/** Jobs until their provider has them: in the state `creating`, with a hold that belongs to this process. */
import type { EndedJob, Job, JobError, JobStore, NewJob } from '../../../core/ports.ts'
import { IDEMPOTENT_MS, startProgress } from '../../rules/jobs.ts'
import { first } from '../sql.ts'
import { OPEN } from './claims.ts'
import { announce } from './events.ts'
import type { JobRow } from './rows.ts'
import type { JobTable, JobTransaction } from './table.ts'

type Creation = Pick<JobStore, 'begin' | 'start' | 'drop' | 'interrupt' | 'interruptLost'>

/** The list of states is that of the index. */
const LOST = `
  SELECT * FROM jobs WHERE ${OPEN} AND state = 'creating' AND NOT EXISTS (SELECT 1 FROM holds WHERE id = hold_id)`

/** The part of `JobStore` that creates jobs, and ends those that no provider has. */
export function creation(table: JobTable): Creation {
  const { lockFree } = table.sql.dialect
  const interruptRow = async (
    within: JobTransaction,
    row: JobRow,
    { error, event, now }: { readonly error: JobError; readonly event: EndedJob['event']; readonly now: number },
  ): Promise<void> => {
    await within.ledger.void(within.job(row).hold)
    const ends = { completed_at: now, settled_at: now, cost: 0n, progress: 100 }
    await within.update(row.id, { state: 'failed', error: JSON.stringify(error), ...ends })
    if (row.callback_url !== null) await announce(within.sql, row.id, event, now)
  }

  return {
    begin: (job, target, holdRequest) =>
      table.write('committed', async within => {
        const { request, principal } = holdRequest
        const { projectId } = principal
        const { ledger } = within
        const before = await within.row(job.id)
        const existing = before ? undefined : await sameKey(within, projectId, job)
        if (existing) return { existing }
        if (before) await ledger.void(within.job(before).hold)
        const hold = await ledger.hold(holdRequest)
        if ('exhausted' in hold) {
          if (before) await within.forget(job.id)
          // A request with the same key may have held meanwhile.
          const held = before ? undefined : await sameKey(within, projectId, job)
          return held ? { existing: held } : hold
        }
        const at = {
          ...{ model: request.model, provider: request.provider, mapping: target.mapping, region: target.region },
          ...{ credential: target.credential, wire: target.wire, owner: target.owner },
          ...{ price: target.price, discount: target.discount },
          ...{ hold_id: hold.id, amount: hold.amount, funds: hold.funds, budgets: hold.budgets },
        }
        if (before) {
          await within.update(job.id, at)
          return hold
        }
        const { callback } = job
        const isNew = await within.insert({
          ...{ id: job.id, kind: job.kind, log_id: request.id, request_id: request.requestId },
          ...{ org_id: principal.orgId, project_id: projectId, key_id: principal.keyId, source: job.source },
          session: job.session,
          labels: job.labels ? JSON.stringify(job.labels) : null,
          ...{ endpoint: request.endpoint, requested_model: request.requestedModel, params: job.params },
          ...{ state: 'creating', idempotency: job.idempotency, request_hash: job.requestHash },
          ...{ created_at: job.createdAt, deadline_at: job.deadlineAt, next_at: job.deadlineAt },
          callback_url: within.sealed(job.id, 'callback_url', callback?.url),
          callback_secret: within.sealed(job.id, 'callback_secret', callback?.secret),
          callback_state: callback ? 'pending' : 'none',
          ...at,
        })
        if (isNew) return hold
        await ledger.void(hold)
        const other = await sameKey(within, projectId, job)
        if (!other) throw new Error(`Another job has the id ${job.id}, or its request has one already.`)
        return { existing: other }
      }),

    start: (id, { upstreamId, state, progress, nextAt }) =>
      table.write('durable', async within => {
        const row = await within.row(id)
        if (row?.state !== 'creating') return undefined
        const started_at = state === 'in_progress' ? row.created_at : null
        const initial = startProgress(progress)
        await within.update(id, { upstream_id: upstreamId, state, progress: initial, next_at: nextAt, started_at })
        await within.ledger.handOver(row.hold_id)
        return within.read(id)
      }),

    drop: id =>
      table.write('committed', async within => {
        const row = await within.row(id)
        if (row?.state !== 'creating') return
        await within.ledger.void(within.job(row).hold)
        await within.forget(id)
      }),

    interrupt: (id, error, event, now) =>
      table.write('durable', async within => {
        const row = await within.row(id)
        if (row?.state === 'creating') await interruptRow(within, row, { error, event, now })
      }),

    async interruptLost(error, event, now) {
      // Nothing is written while there is nothing to do.
      if ((await table.query(LOST)).length === 0) return 0
      return table.write('durable', async within => {
        const rows = await within.sql.query<JobRow>(`${LOST} ${lockFree}`)
        for (const row of rows) await interruptRow(within, row, { error, event: event(row.id), now })
        return rows.length
      })
    },
  }
}

/** The job of this idempotency key; one that is older than a day gives the key up. */
async function sameKey(
  within: JobTransaction,
  projectId: string,
  { idempotency, createdAt }: NewJob,
): Promise<Job | undefined> {
  if (idempotency === null) return undefined
  const text = 'SELECT * FROM jobs WHERE project_id = $1 AND idempotency = $2'
  const same = await first<JobRow>(within.sql, text, [projectId, idempotency])
  if (!same) return undefined
  if (Number(same.created_at) > createdAt - IDEMPOTENT_MS) return within.job(same)
  await within.update(same.id, { idempotency: null })
  return undefined
}
