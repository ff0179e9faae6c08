/** Counts and times each request at its very end: its attempts, its time, refusals by the filter that refused. */

import type { Exchange } from '../core/exchange.ts'
import type { Filter, FilterFactory } from '../core/filter.ts'
import { labelsOf, labelsOfReplay, type OfferLabels } from '../core/offer.ts'
import { catalogOf } from '../core/policy.ts'
import type { Services, Tracing } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import { asError } from '../lib/error.ts'
import { RequestLog } from './request-log.ts'

const options = s.object({
  /** Which requests are logged, one line each. `errors`: each failed request and each failover. */
  log: s.default(s.enum('none', 'errors', 'all'), 'errors'),
})

/** Metrics of every request, and a log line for those that `log` selects. */
export const telemetry: FilterFactory<Infer<typeof options>> = {
  name: 'telemetry',
  options,
  create({ log }, services) {
    const requests = new RequestLog(log, services)
    const { tracing } = services
    const finish: Filter['finish'] = ex => {
      measure(ex, services)
      requests.finished(ex)
      tracing?.ended(ex)
    }
    return tracing ? { handle: traced(tracing), finish } : { finish }
  },
}

/** Traces an attempt; the one that answers ends with its request. */
const traced =
  (tracing: Tracing): NonNullable<Filter['handle']> =>
  async (ex, next) => {
    tracing.began(ex)
    try {
      return await next()
    } catch (thrown) {
      tracing.failed(ex, asError(thrown))
      throw thrown
    }
  }

function measure(ex: Exchange, { metrics }: Services): void {
  const { timings, answer } = ex
  const { failure, status } = answer
  if (failure && status === failure.status && failure.upstreamStatus === undefined) {
    metrics.refusal(ex.currentFilter, failure.code ?? 'internal')
  }
  for (const { target, succeeded, errorType } of ex.attempts) {
    const { provider, model } = labelsOf(target.mapping)
    metrics.attempt(provider, model, succeeded ? 'ok' : errorType)
  }
  const { provider, model } = countedAs(ex)
  const ended = answer.outcome ?? 'error'
  const outcome = ended === 'error' && status >= 400 && status < 500 ? 'refused' : ended
  const labels = { endpoint: ex.endpoint.name, provider, model, outcome }
  const seconds = (ms: number) => ms / 1000
  const inside = timings.answered > 0 && !ex.streaming ? timings.end - timings.answered : 0
  // Marks only the last of several attempts: the wait for the others would count as the gateway's own time.
  const isMeasured = timings.sent > 0 && ex.attempts.length < 2
  metrics.request(labels, {
    seconds: seconds(timings.end - timings.start),
    firstTokenSeconds: ex.streaming && timings.firstToken > 0 ? seconds(timings.firstToken - timings.start) : undefined,
    overheadSeconds: isMeasured ? seconds(timings.sent - timings.start + inside) : undefined,
  })
}

function countedAs(ex: Exchange): OfferLabels {
  const { answer, target } = ex
  if (answer.cached) return labelsOfReplay(answer.cached, catalogOf(ex))
  return target ? labelsOf(target.mapping) : { provider: '', model: '' }
}
