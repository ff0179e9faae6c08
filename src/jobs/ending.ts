/** The end of a job: its cost, the row of its request, and its callback. */

import { costOf } from '../core/cost.ts'
import type { JobOperation } from '../core/job.ts'
import { readPrice } from '../core/money.ts'
import type { EndedJob, FinalState, Job, JobError, JobResult, RequestRow } from '../core/ports.ts'
import type { Usage } from '../core/usage.ts'

import { shortId } from '../lib/id.ts'
import { persistently } from '../lib/persistently.ts'
import type { JobsContext } from './context.ts'

/** How a job ends: `error` where it failed, `result` and `usage` where it is completed. */
export interface Ending {
  readonly state: FinalState
  readonly error?: JobError | undefined
  readonly result?: JobResult | undefined
  /** As the provider reported it. */
  readonly usage?: Usage | undefined
  /** When the provider drops the result. */
  readonly expiresAt?: number | undefined
}

/** The event of a job's end, with a new id; callbacks carry both. */
export const eventFor = (operation: JobOperation<never>, state: FinalState) => ({
  id: `evt_${shortId()}`,
  type: operation.event(state),
})

/** The error of a job whose creation no provider has confirmed. */
export const INTERRUPTED: JobError = {
  code: 'interrupted',
  message: 'The job was cut off while it was being created. Create it again.',
}

/** When a result goes: with its job, or when its provider says that it drops it. Whole milliseconds. */
const expiryOf = (kept: number, reported: number | undefined): number =>
  reported !== undefined && Number.isFinite(reported) ? Math.max(0, Math.min(kept, Math.floor(reported))) : kept

/** Ends a claimed job. False when another process has claimed or ended it. */
export async function endJob(job: Job, ending: Ending, context: JobsContext): Promise<boolean> {
  const operation = context.kinds.get(job.kind)!
  const now = context.now()
  const kept = now + context.options().keep
  const isDone = ending.state === 'completed'
  const ended: EndedJob = {
    state: ending.state,
    error: ending.error ?? null,
    result: ending.result ?? null,
    completedAt: now,
    expiresAt: isDone ? expiryOf(kept, ending.expiresAt) : null,
    event: eventFor(operation, ending.state),
  }
  const row = rowOf(job, ending, operation, now)
  // A write that fails is repeated under the same fence, so that the provider is not polled again.
  const done = await persistently(() => context.store.end(job.id, job.fence, ended, row), context.options().lease)
  if (done) {
    const { provider, model } = job
    context.metrics.ended({ provider, model, state: ending.state }, (now - job.createdAt) / 1000)
    if (isDone) context.alerts?.charged(job)
    if (ending.state === 'failed') context.log.info(failureOf(job, row), 'request failed')
  } else context.metrics.claimLost()
  return done
}

/** The log line of a job that failed, with the fields of other failed requests. */
const failureOf = (job: Job, row: RequestRow) => ({
  job: job.id,
  request_id: row.requestId,
  log_id: row.id,
  endpoint: row.endpoint,
  organization: row.orgId,
  project: row.projectId,
  key_id: row.keyId,
  requested_model: row.requestedModel,
  used_model: row.model,
  used_provider: row.provider,
  status: row.status,
  outcome: row.outcome,
  code: row.errorCode,
  duration_ms: row.durationMs,
})

function rowOf(
  job: Job,
  { state, error, usage: reported = {} }: Ending,
  operation: JobOperation<never>,
  now: number,
): RequestRow {
  const params: unknown = JSON.parse(job.params)
  const isDone = state === 'completed'
  const usage = isDone ? operation.usage(params, reported) : {}
  const cost = isDone ? costOf(usage, readPrice(job.price), operation.terms(params)) : undefined
  return {
    id: job.logId,
    requestId: job.requestId,
    at: job.createdAt,
    orgId: job.orgId,
    projectId: job.projectId,
    keyId: job.keyId,
    endpoint: job.endpoint,
    requestedModel: job.requestedModel,
    model: job.model,
    provider: job.provider,
    source: job.source,
    endUser: job.labels?.endUser,
    tags: job.labels?.tags,
    status: isDone ? 200 : 502,
    outcome: isDone ? 'ok' : 'error',
    errorCode: isDone ? null : (error?.code ?? state),
    streamed: false,
    cached: false,
    attempts: 1,
    durationMs: Math.max(0, now - job.createdAt),
    ttftMs: null,
    usage,
    estimated: false,
    cost: isDone ? (cost?.total ?? null) : 0n,
    storage: 0n,
    discount: job.discount,
    tier: null,
  }
}
