/** The log line of a finished request: identifiers and figures, no content and none of a provider's words. */
import { LRUCache } from 'lru-cache'
import type { Attempt } from '../core/attempt.ts'
import type { Exchange } from '../core/exchange.ts'
import { formatMoney } from '../core/money.ts'
import type { Services } from '../core/ports.ts'
import { RETRY_BUDGET_SPENT } from '../lib/error.ts'
import { upTo } from '../lib/up-to.ts'

/** Refusals that a client can cause without limit: wrong keys, exceeded rates, shed load. */
const SAMPLED_STATUSES = new Set([401, 429, 529])
/** Errors that do not show their cause to the client. Neither do those with the status 500. */
const CAUSED = new Set<unknown>(['billing_unavailable', 'store_unavailable', 'upstream_invalid_response'])
/** Minimum time between two lines for the refusals of one key with one status. */
const SAMPLE_MS = 10_000
/** Keys whose refusals are counted. */
const MAX_SAMPLES = 10_000
/** Clients write model names. */
const MAX_NAME_CHARACTERS = 200

/** The refusals of one key with one status. */
interface Sample {
  /** Time of the last line, in Unix milliseconds. */
  loggedAt: number
  /** Refusals since that line. */
  unlogged: number
}

/** Which requests are logged. `errors`: each failed request and each failover. */
type LoggedRequests = 'none' | 'errors' | 'all'

/** Writes at most one line for each request. */
export class RequestLog {
  readonly #logged: LoggedRequests
  readonly #services: Pick<Services, 'log' | 'now' | 'tracing'>
  readonly #samples = new LRUCache<string, Sample>(upTo(MAX_SAMPLES))

  constructor(logged: LoggedRequests, services: Pick<Services, 'log' | 'now' | 'tracing'>) {
    this.#logged = logged
    this.#services = services
  }

  finished(ex: Exchange): void {
    if (this.#logged === 'none') return
    const { log, tracing } = this.#services
    if (ex.answer.outcome === 'error') this.#failed(ex)
    else if (ex.answer.outcome === 'ok' && ex.attempts.length > 1)
      log.info(fieldsOf(ex, tracing), 'request failed over')
    else if (this.#logged === 'all') log.info(fieldsOf(ex, tracing), 'request')
  }

  #failed(ex: Exchange): void {
    const { log, tracing } = this.#services
    const { failure } = ex.answer
    const unlogged = this.#logged === 'all' ? 0 : this.#unlogged(ex)
    if (unlogged === undefined) return
    const err = failure && (failure.status === 500 || CAUSED.has(failure.code)) ? failure.cause : undefined
    const fields = {
      ...fieldsOf(ex, tracing),
      error: wordsOf(failure),
      remedy: failure?.remedy,
      unlogged: unlogged || undefined,
      err,
    }
    if (ex.answer.status === 200) log.info(fields, 'answer broke off')
    else log.info(fields, 'request failed')
  }

  /** Counts a sampled refusal. Returns how many have had no line before this one; undefined where it has none either. */
  #unlogged({ answer: { status }, attempts, caller: { principal } }: Exchange): number | undefined {
    if (attempts.length > 0 || !SAMPLED_STATUSES.has(status)) return 0
    const key = `${status} ${principal?.keyId ?? ''}`
    const now = this.#services.now()
    const sample = this.#samples.get(key)
    if (sample && now - sample.loggedAt < SAMPLE_MS) {
      sample.unlogged++
      return undefined
    }
    this.#samples.set(key, { loggedAt: now, unlogged: 0 })
    return sample?.unlogged ?? 0
  }
}

function fieldsOf(ex: Exchange, tracing: Services['tracing']) {
  const trace = tracing?.ids(ex)
  const { target, usage, timings } = ex
  const { principal } = ex.caller
  const { cached } = ex.answer
  return {
    request_id: ex.id,
    log_id: ex.logId,
    trace_id: trace?.trace_id,
    span_id: trace?.span_id,
    endpoint: ex.endpoint.name,
    organization: principal?.orgId,
    project: principal?.projectId,
    key_id: principal?.keyId,
    requested_model: (ex.request?.model || ex.requested.model || undefined)?.slice(0, MAX_NAME_CHARACTERS),
    used_model: cached?.model ?? target?.mapping.model.id,
    used_provider: cached?.provider ?? target?.provider.id,
    // A session that has failed was answered by an upgrade.
    status: ex.answer.status || ex.answer.failure?.status,
    outcome: ex.answer.outcome,
    code: ex.answer.failure?.code,
    streamed: ex.streaming || undefined,
    cached: cached ? true : undefined,
    attempts: ex.attempts.map(attemptOf),
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    cost: costOf(ex),
    duration_ms: Math.round(timings.end - timings.start),
  }
}

function attemptOf({ target, status, errorType, durationMs }: Attempt) {
  return {
    provider: target.provider.id,
    model: target.mapping.externalId,
    status,
    error_type: errorType,
    duration_ms: Math.round(durationMs),
  }
}

/** USD; undefined where nothing was used, or its price is unknown. */
function costOf(ex: Exchange): string | undefined {
  const cost = ex.answer.cached || Object.keys(ex.usage).length === 0 ? null : ex.meter.cost
  return cost ? formatMoney(cost.total) : undefined
}

/** Our own words: what a provider says may repeat the prompt, or headers (docs/contract.md#failed-requests). */
function wordsOf(failure: Exchange['answer']['failure']): string | undefined {
  if (!failure) return undefined
  if (failure.details?.reason === RETRY_BUDGET_SPENT) return 'the retry budget is spent: not every provider was tried'
  // These statuses are ours: no provider has answered so, or well.
  if (failure.code === 'all_providers_failed') return 'all providers failed'
  if (failure.upstreamStatus === 200) return 'the provider sent an invalid answer'
  if (failure.upstreamStatus) return `the provider answered with status ${failure.upstreamStatus}`
  // A refusal of the caller's may repeat the request; its code says what it is.
  return failure.status >= 500 ? failure.message : undefined
}
