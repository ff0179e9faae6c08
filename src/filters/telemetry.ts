/** Counts and times each request at its very end: its attempts, its time, refusals by the filter that refused. */
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import { labelsOf, labelsOfReplay, type OfferLabels } from '../core/offer.ts'
import type { Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'

const options = s.object({
  /** Which requests are logged, one line each. */
  log: s.default(s.enum('none', 'errors', 'all'), 'errors'),
})

/** Metrics of every request, and a log line for those that `log` selects. */
export const telemetry: FilterFactory<Infer<typeof options>> = {
  name: 'telemetry',
  options,
  create({ log }, services) {
    return {
      finish(ex) {
        measure(ex, services)
        if (log === 'all' || (log === 'errors' && ex.outcome === 'error' && ex.status >= 500)) report(ex, services)
      },
    }
  },
}

function measure(ex: Exchange, { metrics }: Services): void {
  const { timings, failure } = ex
  if (failure && ex.status === failure.status && failure.upstreamStatus === undefined) {
    metrics.refusal(ex.currentFilter, failure.code ?? 'internal')
  }
  for (const { target, succeeded, errorType } of ex.attempts) {
    const { provider, model } = labelsOf(target.mapping)
    metrics.attempt(provider, model, succeeded ? 'ok' : errorType)
  }
  const { provider, model } = countedAs(ex)
  const labels = { endpoint: ex.endpoint.name, provider, model, outcome: ex.outcome ?? 'error' }
  const seconds = (ms: number) => ms / 1000
  const inside = timings.answered > 0 && !ex.streaming ? timings.end - timings.answered : 0
  // Of several attempts only the last is marked: the wait for the others would count as our own time.
  const isMeasured = timings.sent > 0 && ex.attempts.length < 2
  metrics.request(labels, {
    seconds: seconds(timings.end - timings.start),
    firstTokenSeconds: timings.firstToken > 0 ? seconds(timings.firstToken - timings.start) : undefined,
    overheadSeconds: isMeasured ? seconds(timings.sent - timings.start + inside) : undefined,
  })
}

const NO_OFFER: OfferLabels = { provider: '', model: '' }

function countedAs({ cached, target, catalog }: Exchange): OfferLabels {
  if (cached) return labelsOfReplay(cached, catalog)
  return target ? labelsOf(target.mapping) : NO_OFFER
}

/** Our own words: what a provider says may repeat the prompt, or headers (docs/contract.md#failed-requests). */
function said(failure: Exchange['failure']): string {
  if (!failure) return 'request failed'
  // These statuses are ours: no provider has answered so, or well.
  if (failure.code === 'all_providers_failed') return 'all providers failed'
  if (failure.upstreamStatus === 200) return 'the provider sent an invalid answer'
  return failure.upstreamStatus ? `the provider answered with status ${failure.upstreamStatus}` : failure.message
}

function report(ex: Exchange, { log }: Services): void {
  const { failure } = ex
  const fields = {
    request_id: ex.id,
    log_id: ex.logId,
    endpoint: ex.endpoint.name,
    model: ex.target?.mapping.model.id,
    provider: ex.target?.provider.id,
    organization: ex.principal?.orgId,
    status: ex.status,
    outcome: ex.outcome,
    code: failure?.code,
    attempts: ex.attempts.length,
    ms: Math.round(ex.timings.end - ex.timings.start),
    // Neither error shows its cause to the client.
    err: failure?.status === 500 || failure?.code === 'upstream_invalid_response' ? failure.cause : undefined,
  }
  if (ex.outcome === 'error') log.warn({ ...fields, error: said(failure) }, 'request failed')
  else log.info(fields, 'request')
}
