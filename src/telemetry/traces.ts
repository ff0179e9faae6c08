/** Spans of a request and its attempts, by the GenAI conventions. A request is the server's span, each attempt a client's. */
import { randomBytes } from 'node:crypto'
import { defaultTextMapGetter, ROOT_CONTEXT, type SpanContext, SpanKind, TraceFlags, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace-base'
import type { Exchange } from '../core/exchange.ts'
import { labelsOf } from '../core/offer.ts'
import type { TraceIds } from '../core/ports.ts'
import type { GatewayError } from '../lib/error.ts'
import { contentOf, errorTypeOf, operationOf, usdOf } from './genai.ts'
import { flag, number, operation, type SpanEnd, text, WrittenSpan } from './spans.ts'

/** Clients write model names. */
const MAX_NAME_CHARACTERS = 200
/** Kinds of OTLP. */
const [SERVER, CLIENT] = [SpanKind.SERVER + 1, SpanKind.CLIENT + 1]
/** Lengths of ids as hexadecimal digits. */
const [TRACE_ID, SPAN_ID] = [32, 16]
const RANDOM_BYTES = 4096

interface Trace {
  /** The span of the caller. */
  readonly parent: SpanContext | undefined
  /** The span of the request. */
  readonly span: SpanContext
  readonly state: string | undefined
  readonly isSent: boolean
  /** The current attempt; undefined where none runs. A request that needs no provider, such as a listing, has none. */
  attempt: { readonly id: string; readonly start: number; readonly content: string | undefined } | undefined
  attempts: number
}

/** Decides which traces are sent, and sends them. */
interface Sending {
  /** Decides where the caller does not; undefined where every request is traced. */
  readonly sampler: Sampler | undefined
  /** Takes a span that has ended. */
  send(span: WrittenSpan): void
}

/** Keeps the facts of requests that have not ended. */
export class Traces {
  readonly #sending: Sending | undefined
  readonly #content: boolean
  readonly #propagator = new W3CTraceContextPropagator()
  readonly #traces = new WeakMap<Exchange, Trace>()
  #random = ''
  #taken = 0

  constructor(sending: Sending | undefined, content: boolean) {
    this.#sending = sending
    this.#content = content
  }

  began(ex: Exchange): void {
    const traced = this.#of(ex)
    if (!traced || !ex.target) return
    const id = this.#id(SPAN_ID)
    traced.attempts++
    const content = this.#content ? contentOf(ex.request) : undefined
    if (traced.isSent) traced.attempt = { id, start: performance.now(), content }
    const headers = ['traceparent', `00-${traced.span.traceId}-${id}-${traced.isSent ? '01' : '00'}`]
    if (traced.state !== undefined) headers.push('tracestate', traced.state)
    ex.outbound.trace = headers
  }

  failed(ex: Exchange, error: GatewayError): void {
    const traced = this.#traces.get(ex)
    if (!traced?.attempt) return
    const facts = errorType(error.code ?? String(error.status)) + httpStatus(error.upstreamStatus || undefined)
    this.#sendAttempt(ex, traced, { at: performance.now(), firstToken: 0, isError: true }, facts)
  }

  ids(ex: Exchange): TraceIds | undefined {
    const span = this.#of(ex)?.span
    return span && { trace_id: span.traceId, span_id: span.spanId }
  }

  ended(ex: Exchange): void {
    const traced = this.#of(ex)
    this.#traces.delete(ex)
    if (!traced?.isSent) return
    const { parent, span, state } = traced
    const { start, firstToken, end: ended } = ex.timings
    const error = errorTypeOf(ex)
    const end = { at: ended || performance.now(), firstToken, isError: error !== undefined }
    const facts = answeredBy(ex) + errorType(error)
    if (traced.attempt) this.#sendAttempt(ex, traced, end, facts + httpStatus(200))
    const { status } = ex.answer
    // The conventions for HTTP leave the status of a server's span unset where its client is at fault.
    if (status >= 400 && status < 500) end.isError = false
    const attributes = requestOf(ex) + facts + attempts(traced.attempts) + httpStatus(status || undefined)
    const { traceId, spanId } = span
    this.#sending!.send(
      new WrittenSpan({ name: nameOf(ex), kind: SERVER, traceId, spanId, state, parent, start, attributes }, end),
    )
  }

  /** Ends the current attempt. */
  #sendAttempt(ex: Exchange, traced: Trace, end: SpanEnd, facts: string): void {
    const { id: spanId, start, content } = traced.attempt!
    const { span: parent, state } = traced
    traced.attempt = undefined
    const { provider, mapping } = ex.target!
    const named = operation(operationOf(ex)) + providerName(provider.id) + requestModel(mapping.externalId)
    const attributes = named + attempt(traced.attempts) + input(content) + facts
    const { traceId } = parent
    this.#sending!.send(
      new WrittenSpan({ name: nameOf(ex), kind: CLIENT, traceId, spanId, state, parent, start, attributes }, end),
    )
  }

  /** Begins the trace of a request at its first use. */
  #of(ex: Exchange): Trace | undefined {
    if (!this.#sending) return undefined
    const known = this.#traces.get(ex)
    if (known) return known
    const { sampler } = this.#sending
    const parent = this.#parentOf(ex)
    const traceId = parent?.traceId ?? this.#id(TRACE_ID)
    const isSent = parent
      ? (parent.traceFlags & TraceFlags.SAMPLED) !== 0
      : !sampler ||
        sampler.shouldSample(ROOT_CONTEXT, traceId, '', SpanKind.SERVER, {}, []).decision ===
          SamplingDecision.RECORD_AND_SAMPLED
    const span = { traceId, spanId: this.#id(SPAN_ID), traceFlags: isSent ? TraceFlags.SAMPLED : TraceFlags.NONE }
    const traced = { parent, span, state: parent?.traceState?.serialize(), isSent, attempt: undefined, attempts: 0 }
    this.#traces.set(ex, traced)
    return traced
  }

  #parentOf(ex: Exchange): SpanContext | undefined {
    const traceparent = ex.header('traceparent')
    if (traceparent === undefined) return undefined
    const carrier = { traceparent, tracestate: ex.header('tracestate') }
    return trace.getSpanContext(this.#propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter))
  }

  /** Cuts ids from one long random text, which costs less than a call for each. */
  #id(length: number): string {
    if (this.#taken + length > this.#random.length) {
      this.#random = randomBytes(RANDOM_BYTES).toString('hex')
      this.#taken = 0
    }
    const from = this.#taken
    this.#taken += length
    return this.#random.slice(from, this.#taken)
  }
}

const nameOf = (ex: Exchange): string =>
  ex.target ? `${operationOf(ex)} ${labelsOf(ex.target.mapping).model}` : operationOf(ex)

const providerName = text('gen_ai.provider.name')
const requestModel = text('gen_ai.request.model')
const responseModel = text('gen_ai.response.model')
const inputTokens = number('gen_ai.usage.input_tokens')
const outputTokens = number('gen_ai.usage.output_tokens')
const cacheRead = number('gen_ai.usage.cache_read.input_tokens')
const cacheCreation = number('gen_ai.usage.cache_creation.input_tokens')
const input = text('gen_ai.input.messages')
const httpStatus = number('http.response.status_code')
const errorType = text('error.type')
const costUsd = number('gateway.cost_usd', 'double')
const timeToFirstToken = number('gateway.time_to_first_token', 'double')
const estimated = flag('gateway.usage.estimated')
const attempt = number('gateway.attempt')
const attempts = number('gateway.attempts')
const outcome = text('gateway.outcome')
const streamed = flag('gateway.streamed')
const cached = flag('gateway.cached')
const endpointName = text('gateway.endpoint')
const requestId = text('gateway.request_id')
const logId = text('gateway.log_id')
const organization = text('gateway.organization')
const project = text('gateway.project')
const keyId = text('gateway.key_id')

/** Facts of the answer: its model, tokens and cost. */
function answeredBy(ex: Exchange): string {
  const { usage, timings, target, meter } = ex
  return (
    responseModel(ex.answer.cached?.model ?? target?.mapping.model.id) +
    inputTokens(usage.prompt) +
    outputTokens(usage.completion) +
    cacheRead(usage.input_cache_read) +
    cacheCreation(usage.input_cache_write) +
    estimated(ex.estimated || undefined) +
    costUsd(ex.answer.cached ? 0 : usdOf(usage, target && meter.cost)) +
    timeToFirstToken(timings.firstToken > 0 ? (timings.firstToken - timings.start) / 1000 : undefined)
  )
}

/** Facts of the request: who asked for what. */
function requestOf(ex: Exchange): string {
  const { principal } = ex.caller
  const requested = ex.request?.model || ex.requested.model || undefined
  return (
    operation(operationOf(ex)) +
    requestModel(requested?.slice(0, MAX_NAME_CHARACTERS)) +
    providerName(ex.target?.provider.id) +
    endpointName(ex.endpoint.name) +
    requestId(ex.id) +
    logId(ex.logId) +
    organization(principal?.orgId) +
    project(principal?.projectId) +
    keyId(principal?.keyId) +
    outcome(ex.answer.outcome) +
    streamed(ex.streaming) +
    cached(ex.answer.cached !== undefined)
  )
}
