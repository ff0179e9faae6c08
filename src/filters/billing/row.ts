/** The row that is kept of a finished request: facts, no content. */

import type { Outcome } from '../../core/answer.ts'
import type { Attempt } from '../../core/attempt.ts'
import type { Exchange } from '../../core/exchange.ts'
import { formatMoney, type Money } from '../../core/money.ts'
import { seriesOf } from '../../core/offer.ts'
import type { Labels } from '../../core/policy.ts'
import type { AttemptRecord, HoldRequest, RequestDetail, RequestRow } from '../../core/ports.ts'
import { sourceOf } from '../source.ts'

const writtenModel = ({ requested: { written }, request }: Exchange): string => (written ?? request)?.model ?? ''

/** The columns that identify the row of a running request. */
export const identityOf = (ex: Exchange): HoldRequest['request'] => ({
  id: ex.logId,
  requestId: ex.id,
  endpoint: ex.endpoint.name,
  requestedModel: writtenModel(ex),
  model: ex.target?.mapping.model.id ?? null,
  provider: ex.target?.provider.id ?? null,
})

/**
 * `cost` null means that the price is unknown; `held` is undefined where nothing was held. Only for exchanges with a
 * principal.
 */
export function rowOf(ex: Exchange, outcome: Outcome, cost: Money | null, now: number, held?: Money): RequestRow {
  const principal = ex.caller.principal!
  const { mapping } = ex.target ?? {}
  const failure = outcome === 'ok' ? undefined : failureOf(ex, outcome)
  const { endUser, tags } = ex.caller.labels
  return {
    id: ex.logId,
    requestId: ex.id,
    at: ex.at,
    orgId: principal.orgId,
    projectId: principal.projectId,
    keyId: principal.keyId,
    endpoint: ex.endpoint.name,
    requestedModel: writtenModel(ex),
    model: ex.answer.cached?.model ?? servedBy(ex, outcome),
    provider: ex.answer.cached?.provider ?? mapping?.provider.id ?? null,
    source: sourceOf(ex),
    endUser,
    tags: tagsOf(tags),
    status: outcome === 'ok' ? 200 : (failure?.status ?? 499),
    outcome,
    errorCode: failure?.code ?? null,
    streamed: ex.streaming,
    cached: ex.answer.cached !== undefined,
    attempts: ex.attempts.length,
    durationMs: Math.max(0, now - ex.at),
    ttftMs: firstTokenMs(ex),
    usage: { ...ex.usage },
    estimated: ex.estimated,
    cost,
    storage: ex.answer.storage ?? 0n,
    discount: ex.target?.price?.discount ?? 0,
    tier: ex.answer.servedTier ?? null,
    detail: detailOf(ex, held),
  }
}

/** Tags as rows have them; undefined for none. */
export const tagsOf = (tags: Labels['tags']): RequestRow['tags'] =>
  tags.size > 0 ? Object.fromEntries(tags) : undefined

/** Null for a whole answer: its first token comes with its last one. */
const firstTokenMs = ({ streaming, timings }: Exchange): number | null =>
  streaming && timings.firstToken > 0 ? Math.round(timings.firstToken - timings.start) : null

function detailOf(ex: Exchange, held: Money | undefined): RequestDetail | undefined {
  if (ex.attempts.length === 0 && held === undefined) return undefined
  const last = ex.attempts.length - 1
  return {
    held: held === undefined ? null : formatMoney(held),
    attempts: ex.attempts.map((attempt, at) => recordOf(ex, attempt, at === last)),
  }
}

function recordOf({ timings }: Exchange, attempt: Attempt, isLast: boolean): AttemptRecord {
  const { mapping, provider, credential } = attempt.target
  const { connectMs } = attempt
  const began = timings.start + attempt.startedMs
  // The answer is charged before it has ended for its client.
  const durationMs = attempt.durationMs || performance.now() - began
  return {
    provider: provider.id,
    model: mapping.model.id,
    status: attempt.status,
    error_type: attempt.errorType,
    started_ms: Math.round(attempt.startedMs),
    connect_ms: connectMs === undefined ? null : Math.round(connectMs),
    ttft_ms: isLast && timings.firstToken > began ? Math.round(timings.firstToken - began) : null,
    duration_ms: Math.round(durationMs),
    credential: credential?.fingerprint ?? null,
    reason: attempt.reason,
  }
}

/** The failure to record. Once the client has left or stopped reading, later failures of the provider do not count. */
const failureOf = ({ answer: { failure }, signal: { reason } }: Exchange, outcome: Outcome) =>
  outcome === 'aborted' ? (reason ?? failure) : (failure ?? reason)

/** A name that a caller gave and that has answered nothing may be made up: sums by the hour count all such as one. */
function servedBy({ target, timings }: Exchange, outcome: Outcome): string | null {
  if (!target) return null
  const { model } = target.mapping
  return outcome === 'ok' || timings.firstToken > 0 ? model.id : seriesOf(model)
}
