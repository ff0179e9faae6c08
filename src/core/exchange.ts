/** One request's life, pinned to one snapshot. */

import { CLIENT_CLOSED, type GatewayError } from '../lib/error.ts'
import { requestId, shortId } from '../lib/id.ts'
import { scheduler } from '../limits/scheduler.ts'
import { Answer } from './answer.ts'
import type { Attempt, Timings } from './attempt.ts'
import type { Cancellation } from './cancel.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Codec } from './codec.ts'
import type { Endpoint } from './endpoint.ts'
import { type Event, isContent, type UsageReport } from './event.ts'
import { ExchangeInput, type InputSource } from './exchange-input.ts'
import { type HttpFacts, HttpRequest } from './http-request.ts'
import type { AnswerMeter, PromptMeter } from './meter.ts'
import type { Terms } from './money.ts'
import type { Operation } from './operation.ts'
import type { Op, Ops } from './ops.ts'
import { Outbound } from './outbound.ts'
import { Caller } from './policy.ts'
import type { SessionCharges } from './realtime.ts'
import type { Snapshot } from './snapshot.ts'
import type { Target } from './translator.ts'
import type { Usage } from './usage.ts'

/** Facts about a request from the listener. */
interface ExchangeInit extends InputSource, HttpFacts {
  snapshot: Snapshot
  endpoint: Endpoint
  meters: Meters
  signal: Cancellation
}

/** Makes the meters of an exchange, which may not be complete yet. */
export interface Meters {
  prompt(ex: Exchange): PromptMeter
  answer(ex: Exchange): AnswerMeter
}

/** The model of a request as its caller names it, and the request before routing changes it. */
interface RequestedModel {
  /** Without its provider; empty until known. */
  model: string
  provider: string | null
  written?: Ops[Op]
}

/** One request and all that filters learn about it until its record is written. */
export class Exchange {
  /** The caller's `x-request-id`, or a new one. Not unique: a caller may repeat it. */
  readonly id: string
  /** Unique; the key of all records of this request. */
  readonly logId: string = shortId()
  readonly snapshot: Snapshot
  readonly endpoint: Endpoint
  readonly http: HttpRequest
  /** The body. */
  readonly input: ExchangeInput
  readonly signal: Cancellation
  /** Unix milliseconds of arrival. */
  readonly at: number = Date.now()
  readonly timings: Timings
  readonly caller = new Caller()
  /** The canonical request, once `readRequest()` has resolved. */
  request: Ops[Op] | undefined = undefined
  readonly requested: RequestedModel = { model: '', provider: null }
  target: Target | undefined = undefined
  /** Request of the current attempt. Set by the encoding filter. */
  readonly outbound = new Outbound()
  readonly attempts: Attempt[] = []
  readonly answer = new Answer()
  readonly usage: Usage = {}
  /** True when a part of `usage` is the gateway's estimate. */
  estimated = false
  /** How each part of a session is paid for; there when its operation is one, and money was found for it. */
  charges: SessionCharges | undefined = undefined
  /** Name of the deepest filter entered, under which a refusal is counted. */
  currentFilter = 'http'
  /** Number of links of the chain entered. */
  filtersEntered = 0
  /** Estimates the prompt, as its target counts. */
  readonly prompt: PromptMeter
  /** Measures the answer as it comes, and merges reports into `usage`. */
  readonly meter: AnswerMeter
  #request: Promise<Ops[Op]> | undefined

  constructor(init: ExchangeInit) {
    this.http = new HttpRequest(init)
    this.id = requestId(this.http.header('x-request-id'))
    this.snapshot = init.snapshot
    this.endpoint = init.endpoint
    this.signal = init.signal
    this.input = new ExchangeInput(init)
    this.prompt = init.meters.prompt(this)
    this.meter = init.meters.answer(this)
    const start = performance.now()
    this.timings = { start, read: start, sent: 0, answered: 0, firstToken: 0, end: 0, stalled: 0 }
  }

  header(name: string): string | undefined {
    return this.http.header(name)
  }

  /** Runs a step of the work on the request: through the scheduler where the request is large, else at once. */
  step<T>(work: () => T | Promise<T>): T | Promise<T> {
    return this.input.isLarge ? scheduler.run(this.caller.tenant, work) : work()
  }

  /** The canonical request: read, bounded, parsed, validated and decoded once, on first use. */
  readRequest(): Promise<Ops[Op]> {
    this.#request ??= this.input.read().then(value => {
      this.timings.read = performance.now()
      const body = this.input.stored?.read(value) ?? value
      return body instanceof Promise
        ? body.then(read => this.step(() => this.#decode(read)))
        : this.step(() => this.#decode(body))
    })
    return this.#request
  }

  #decode(body: unknown): Ops[Op] | Promise<Ops[Op]> {
    const request = this.decoded(body, this.endpoint.codec)
    this.request = request
    return this.endpoint.operation?.inspect?.(request)?.then(() => request) ?? request
  }

  /** The canonical request of a body that `codec` can read, with its routing. */
  decoded<O extends Op>(body: unknown, codec: Codec<O>): Ops[O] {
    const routed = this.endpoint.operation?.routed?.(body)
    return routed ? Object.assign(codec.decode(routed.body, this), routed.fields) : codec.decode(body, this)
  }

  /** The request as a chat request; only for exchanges whose input has been read. */
  get chat(): ChatRequest {
    return this.request as ChatRequest
  }

  /** The operation of the endpoint; only for endpoints that have one. */
  get operation(): Operation {
    return this.endpoint.operation!
  }

  /** Price terms besides usage: as requested, later as served. */
  get terms(): Terms {
    const requested = this.request && this.endpoint.operation?.terms?.(this.request)
    const { servedTier } = this.answer
    const { requests } = this.meter
    if (servedTier === undefined && !requests) return requested ?? {}
    return { tier: servedTier ?? requested?.tier, sizes: requested?.sizes, requests }
  }

  get streaming(): boolean {
    return this.request !== undefined && 'stream' in this.request && this.request.stream === true
  }

  /** An answer has begun, so no further target is tried: releases the stored request. */
  committed(): void {
    this.outbound.release()
    this.input.release()
  }

  /** Counts an answer where it is paid for, once per batch: what filters above keep or change has its cost as well. */
  count(batch: readonly Event[]): void {
    this.answer.isCounted = true
    this.meter.count(batch)
  }

  /** Records what passes to the client: first token, failure; and counts it where `count` does not. Once per batch. */
  observe(batch: readonly Event[]): void {
    const { answer } = this
    if (!answer.isCounted) this.meter.count(batch)
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (this.timings.firstToken === 0 && isContent(event)) this.timings.firstToken = performance.now()
      if (event.type === 'start') answer.fingerprint = event.fingerprint
      else if (event.type === 'error') {
        answer.failure = event.error
        if (event.error.billed) answer.isCut = true
      } else if (event.type === 'finish' && event.reason === 'length') answer.stoppedBy ??= this.outbound.limit?.by
    }
  }

  /** The provider charges this usage of parts of a request that gets no answer, by its caller's fault or leaving. */
  answeredInPart(report: UsageReport, error: GatewayError): void {
    this.outbound.atProvider = true
    this.answer.billedFailure = 'parts'
    this.count([report])
    this.answer.failure = error
  }

  /** Counts events of an answer that failed by what its caller had it write: by their report, or as of a cut answer. */
  failedWith(events: readonly Event[], error: GatewayError): void {
    this.answer.billedFailure = 'whole'
    this.count(events)
    this.answer.failure = error
    this.answer.isCut = this.usage.completion === undefined || this.estimated
  }

  /** Whether the caller left, or was cut off, while a sound provider had its request: that charges for its work. */
  get isOwed(): boolean {
    return this.answer.isCut || (this.outbound.atProvider && this.signal.reason?.status === CLIENT_CLOSED)
  }
}
