/** Spans of a request and its attempts, by the GenAI conventions. A request is the server's span, each attempt a client's. */
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { Exchange } from '../core/exchange.ts'
import { labelsOf } from '../core/offer.ts'
import type { TraceIds } from '../core/ports.ts'
import type { GatewayError } from '../lib/error.ts'
import { contentOf, errorTypeOf, operationOf, usdOf } from './genai.ts'

/** Clients write model names. */
const MAX_NAME = 200

interface Trace {
  readonly context: Context
  readonly request: Span
  attempt: Span | undefined
  attempts: number
}

/** Keeps the spans of requests that have not ended. */
export class Traces {
  readonly #tracer: Tracer | undefined
  readonly #content: boolean
  readonly #propagator = new W3CTraceContextPropagator()
  readonly #traces = new WeakMap<Exchange, Trace>()

  constructor(tracer: Tracer | undefined, content: boolean) {
    this.#tracer = tracer
    this.#content = content
  }

  began(ex: Exchange): void {
    const traced = this.#of(ex)
    if (!traced) return
    const { provider, mapping } = ex.target!
    const operation = operationOf(ex)
    const { model } = labelsOf(mapping)
    const attempt = this.#tracer!.startSpan(
      `${operation} ${model}`,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          'gen_ai.operation.name': operation,
          'gen_ai.provider.name': provider.id,
          'gen_ai.request.model': mapping.externalId,
          'gateway.attempt': ++traced.attempts,
        },
      },
      traced.context,
    )
    traced.attempt = attempt
    if (this.#content && attempt.isRecording()) {
      const content = contentOf(ex.request)
      if (content !== undefined) attempt.setAttribute('gen_ai.input.messages', content)
    }
    const carrier: Record<string, string> = {}
    this.#propagator.inject(trace.setSpan(traced.context, attempt), carrier, defaultTextMapSetter)
    ex.outbound.trace = Object.entries(carrier).flat()
  }

  failed(ex: Exchange, error: GatewayError): void {
    const traced = this.#traces.get(ex)
    const attempt = traced?.attempt
    if (!attempt) return
    attempt.setAttribute('error.type', error.code ?? String(error.status))
    if (error.upstreamStatus) attempt.setAttribute('http.response.status_code', error.upstreamStatus)
    attempt.setStatus({ code: SpanStatusCode.ERROR })
    attempt.end()
    traced.attempt = undefined
  }

  ids(ex: Exchange): TraceIds | undefined {
    const context = this.#of(ex)?.request.spanContext()
    return context && { trace_id: context.traceId, span_id: context.spanId }
  }

  ended(ex: Exchange): void {
    const traced = this.#of(ex)
    if (!traced) return
    this.#traces.delete(ex)
    const { request, attempt } = traced
    const { timings, answer } = ex
    const error = errorTypeOf(ex)
    const answered = answeredBy(ex)
    for (const span of [attempt, request]) {
      if (!span?.isRecording()) continue
      if (timings.firstToken > 0) span.addEvent('gateway.first_token', undefined, timings.firstToken)
      span.setAttributes(answered)
      if (error !== undefined) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR })
      if (span === attempt) span.setAttribute('http.response.status_code', 200)
    }
    if (request.isRecording()) {
      request.updateName(ex.target ? `${operationOf(ex)} ${labelsOf(ex.target.mapping).model}` : operationOf(ex))
      request.setAttributes(requestOf(ex))
      request.setAttribute('gateway.attempts', traced.attempts)
      if (answer.status) request.setAttribute('http.response.status_code', answer.status)
    }
    attempt?.end(timings.end || undefined)
    request.end(timings.end || undefined)
  }

  /** Begins the trace of a request at its first use. */
  #of(ex: Exchange): Trace | undefined {
    if (!this.#tracer) return undefined
    const known = this.#traces.get(ex)
    if (known) return known
    const carrier = { traceparent: ex.header('traceparent'), tracestate: ex.header('tracestate') }
    const parent = this.#propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter)
    const request = this.#tracer.startSpan(
      operationOf(ex),
      { kind: SpanKind.SERVER, startTime: ex.timings.start },
      parent,
    )
    const traced = { context: trace.setSpan(parent, request), request, attempt: undefined, attempts: 0 }
    this.#traces.set(ex, traced)
    return traced
  }
}

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
