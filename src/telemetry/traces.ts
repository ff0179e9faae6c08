/** Spans of a request and its attempts, by the GenAI conventions. A request is the server's span, each attempt a client's. */
import {
  type Attributes,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  TraceFlags,
  type TraceState,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { RandomIdGenerator, type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace-base'
import type { Exchange } from '../core/exchange.ts'
import { labelsOf } from '../core/offer.ts'
import type { TraceIds } from '../core/ports.ts'
import type { GatewayError } from '../lib/error.ts'
import { contentOf, errorTypeOf, operationOf, usdOf } from './genai.ts'
import { type BegunSpan, WrittenSpan } from './spans.ts'

/** Clients write model names. */
const MAX_NAME = 200
/** Kinds of OTLP. */
const [SERVER, CLIENT] = [SpanKind.SERVER + 1, SpanKind.CLIENT + 1]

interface Trace {
  readonly parent: SpanContext | undefined
  readonly context: SpanContext
  attempt: BegunSpan | undefined
  attempts: number
}

/** Decides which traces are sent, and sends them. */
interface Sending {
  readonly sampler: Sampler
  /** Takes a span that has ended. */
  send(span: WrittenSpan): void
}

/** Keeps the facts of requests that have not ended. */
export class Traces {
  readonly #sending: Sending | undefined
  readonly #content: boolean
  readonly #propagator = new W3CTraceContextPropagator()
  readonly #ids = new RandomIdGenerator()
  readonly #traces = new WeakMap<Exchange, Trace>()

  constructor(sending: Sending | undefined, content: boolean) {
    this.#sending = sending
    this.#content = content
  }

  began(ex: Exchange): void {
    const traced = this.#of(ex)
    if (!traced) return
    const { traceId, traceFlags, traceState } = traced.context
    const context = contextOf(traceId, this.#ids.generateSpanId(), traceFlags, traceState)
    traced.attempts++
    if (isSent(context)) traced.attempt = this.#attemptOf(ex, context, traced)
    const flags = isSent(context) ? '01' : '00'
    const headers = ['traceparent', `00-${traceId}-${context.spanId}-${flags}`]
    if (traceState) headers.push('tracestate', traceState.serialize())
    ex.outbound.trace = headers
  }

  failed(ex: Exchange, error: GatewayError): void {
    const traced = this.#traces.get(ex)
    if (!traced?.attempt) return
    const { attempt } = traced
    traced.attempt = undefined
    attempt.attributes['error.type'] = error.code ?? String(error.status)
    if (error.upstreamStatus) attempt.attributes['http.response.status_code'] = error.upstreamStatus
    this.#sending!.send(new WrittenSpan(attempt, { at: performance.now(), firstToken: 0, isError: true }))
  }

  ids(ex: Exchange): TraceIds | undefined {
    const context = this.#of(ex)?.context
    return context && { trace_id: context.traceId, span_id: context.spanId }
  }

  ended(ex: Exchange): void {
    const traced = this.#of(ex)
    if (!traced) return
    this.#traces.delete(ex)
    const { attempt, context, parent } = traced
    if (!isSent(context)) return
    const { start, firstToken, end: ended } = ex.timings
    const error = errorTypeOf(ex)
    const end = { at: ended || performance.now(), firstToken, isError: error !== undefined }
    const answered = Object.assign(answeredBy(ex), { 'error.type': error })
    if (attempt) {
      Object.assign(attempt.attributes, answered, { 'http.response.status_code': 200 })
      this.#sending!.send(new WrittenSpan(attempt, end))
    }
    const attributes = Object.assign(answered, requestOf(ex), {
      'gateway.attempts': traced.attempts,
      'http.response.status_code': ex.answer.status || undefined,
    })
    const name = ex.target ? `${operationOf(ex)} ${labelsOf(ex.target.mapping).model}` : operationOf(ex)
    this.#sending!.send(new WrittenSpan({ context, name, start, kind: SERVER, parent, attributes }, end))
  }

  #attemptOf(ex: Exchange, context: SpanContext, traced: Trace): BegunSpan {
    const { provider, mapping } = ex.target!
    const operation = operationOf(ex)
    const content = this.#content ? contentOf(ex.request) : undefined
    return {
      context,
      kind: CLIENT,
      parent: traced.context,
      name: `${operation} ${labelsOf(mapping).model}`,
      start: performance.now(),
      attributes: {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': provider.id,
        'gen_ai.request.model': mapping.externalId,
        'gateway.attempt': traced.attempts,
        'gen_ai.input.messages': content,
      },
    }
  }

  /** Begins the trace of a request at its first use. */
  #of(ex: Exchange): Trace | undefined {
    if (!this.#sending) return undefined
    const known = this.#traces.get(ex)
    if (known) return known
    const traceparent = ex.header('traceparent')
    const carrier = { traceparent, tracestate: ex.header('tracestate') }
    const above =
      traceparent === undefined ? ROOT_CONTEXT : this.#propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter)
    const parent = trace.getSpanContext(above)
    const traceId = parent?.traceId ?? this.#ids.generateTraceId()
    const { decision } = this.#sending.sampler.shouldSample(above, traceId, operationOf(ex), SpanKind.SERVER, {}, [])
    const traceFlags = decision === SamplingDecision.RECORD_AND_SAMPLED ? TraceFlags.SAMPLED : TraceFlags.NONE
    const context = contextOf(traceId, this.#ids.generateSpanId(), traceFlags, parent?.traceState)
    const traced = { parent, context, attempt: undefined, attempts: 0 }
    this.#traces.set(ex, traced)
    return traced
  }
}

const contextOf = (
  traceId: string,
  spanId: string,
  traceFlags: number,
  traceState: TraceState | undefined,
): SpanContext => (traceState ? { traceId, spanId, traceFlags, traceState } : { traceId, spanId, traceFlags })

const isSent = ({ traceFlags }: SpanContext): boolean => (traceFlags & TraceFlags.SAMPLED) !== 0

/** Facts of the answer: its model, tokens and cost. */
function answeredBy(ex: Exchange): Attributes {
  const { usage, timings, target, meter } = ex
  return {
    'gen_ai.response.model': ex.answer.cached?.model ?? target?.mapping.model.id,
    'gen_ai.usage.input_tokens': usage.prompt,
    'gen_ai.usage.output_tokens': usage.completion,
    'gen_ai.usage.cache_read.input_tokens': usage.input_cache_read,
    'gen_ai.usage.cache_creation.input_tokens': usage.input_cache_write,
    'gateway.usage.estimated': ex.estimated || undefined,
    'gateway.cost_usd': ex.answer.cached ? 0 : usdOf(usage, target && meter.cost),
    'gateway.time_to_first_token': timings.firstToken > 0 ? (timings.firstToken - timings.start) / 1000 : undefined,
  }
}

/** Facts of the request: who asked for what. */
function requestOf(ex: Exchange): Attributes {
  const { principal } = ex.caller
  const requested = ex.request?.model || ex.requested.model || undefined
  return {
    'gen_ai.operation.name': operationOf(ex),
    'gen_ai.request.model': requested?.slice(0, MAX_NAME),
    'gen_ai.provider.name': ex.target?.provider.id,
    'gateway.endpoint': ex.endpoint.name,
    'gateway.request_id': ex.id,
    'gateway.log_id': ex.logId,
    'gateway.organization': principal?.orgId,
    'gateway.project': principal?.projectId,
    'gateway.key_id': principal?.keyId,
    'gateway.outcome': ex.answer.outcome,
    'gateway.streamed': ex.streaming,
    'gateway.cached': ex.answer.cached !== undefined,
  }
}
