/** One request's life, pinned to one snapshot. */

import { CLIENT_CLOSED, type GatewayError } from '../lib/error.ts'
import { requestId, shortId } from '../lib/id.ts'
import { scheduler } from '../limits/scheduler.ts'
import { type Address, type AddressRange, clientAddress } from './address.ts'
import type { Attempt } from './attempt.ts'
import type { Cancellation } from './cancel.ts'
import type { Catalog } from './catalog.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Codec } from './codec.ts'
import type { Endpoint } from './endpoint.ts'
import { type Event, isContent, type UsageReport } from './event.ts'
import { ExchangeInput, type InputSource } from './exchange-input.ts'
import type { Upgrade } from './message-socket.ts'
import type { AnswerMeter, Meters, PromptMeter } from './meter.ts'
import type { Cost, Money, Terms } from './money.ts'
import type { Operation } from './operation.ts'
import type { Op, Ops } from './ops.ts'
import { Outbound } from './outbound.ts'
import type { Access, Policy } from './policy.ts'
import type { HealingSkipped, Principal, Replayed } from './ports.ts'
import type { SessionCharges } from './realtime.ts'
import type { Params } from './router.ts'
import type { Snapshot } from './snapshot.ts'
import type { StoredResponses } from './stored-responses.ts'
import type { Timings } from './timings.ts'
import type { Target } from './translator.ts'
import { CHARACTERS, type Usage } from './usage.ts'
import type { NativeRequest } from './wire.ts'

/** What ends an answer early: the organization's credits or plan, or a limit of its own. */
export type StoppedBy = 'credit' | 'limit'

/** As `node:http` gives them: names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>

/** `aborted`: the caller left before the end. */
export type Outcome = 'ok' | 'error' | 'aborted'

/** What the listener states about a request. */
interface ExchangeInit extends InputSource {
  snapshot: Snapshot
  endpoint: Endpoint
  meters: Meters
  /** Request method; GET by default. */
  method?: string
  headers: Headers
  /** The part after the `?`, undecoded. */
  query: string
  /** Parameters of the endpoint's path. */
  params?: Params
  signal: Cancellation
  /** Address of the client's end of the connection; '' when unknown. */
  peer?: string
  /** Local port of the connection; 0 when unknown. */
  port?: number
  /** See `Exchange.upgrade`. */
  upgrade?: Upgrade
}

const NO_PARAMS: Params = Object.freeze({})
const NO_PROXIES: readonly AddressRange[] = Object.freeze([])

/** One request and all that filters learn about it until its record is written. */
export class Exchange {
  /** The caller's `x-request-id`, or a new one. Not unique: a caller may repeat it. */
  readonly id: string
  /** Unique; the key of all records of this request. */
  readonly logId: string = shortId()
  readonly snapshot: Snapshot
  readonly endpoint: Endpoint
  readonly method: string
  readonly headers: Headers
  readonly query: string
  readonly params: Params
  readonly signal: Cancellation
  readonly peer: string
  readonly port: number
  /** For a WebSocket request at an endpoint that accepts them; called at most once. */
  readonly upgrade: Upgrade | undefined
  /** Unix milliseconds of arrival. */
  readonly at: number = Date.now()
  readonly timings: Timings

  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: readonly AddressRange[] = NO_PROXIES
  principal: Principal | undefined = undefined
  /** The organization's policy, and the key's access under it; both are set with the principal. */
  policy: Policy | undefined = undefined
  access: Access | undefined = undefined
  /** The canonical request, once `readRequest()` has resolved. */
  request: Ops[Op] | undefined = undefined
  /** The body as the client sent it, for codecs whose wire providers speak too; see `NativeForm`. */
  native: NativeRequest | undefined = undefined
  /** Finds the response that the request continues, and stores its own; undefined when the project stores none. */
  stored: StoredResponses | undefined = undefined
  /** False when the client's wire shows reasoning only on request and it was not requested. Set by the codec. */
  showsReasoning = true
  /** The model as the request names it, without a provider; empty until known. */
  requestedModel = ''
  requestedProvider: string | null = null
  target: Target | undefined = undefined
  /** What the current attempt sends. Set by the encoding filter. */
  readonly outbound = new Outbound()
  /** The provider has received the whole request of the current attempt. */
  atProvider = false
  /** The gateway ended the answer before its model did. */
  isCut = false
  /** What is charged of an answer that failed: all that came of it, or the parts of its request that were answered. */
  billedFailure: 'whole' | 'parts' | undefined = undefined
  /** The limit that ended the answer, or bounded it. */
  stoppedBy: StoppedBy | undefined = undefined
  /** Why healing was requested but skipped; undefined when the answer was checked. */
  healingSkipped: HealingSkipped | undefined = undefined
  /** The gateway marked the prompt of the current attempt for the provider's cache. */
  autoCached = false
  readonly attempts: Attempt[] = []
  readonly usage: Usage = {}
  /** True when a part of `usage` is the gateway's estimate. */
  estimated = false
  servedTier: string | undefined = undefined
  /** The provider's identification of the answering system. */
  fingerprint: string | undefined = undefined
  /** How each part of a session is paid for; there when its operation is one, and money was found for it. */
  charges: SessionCharges | undefined = undefined
  /** Headers of a 200 that are independent of the provider: a stream may begin before the provider is known. */
  replyHeaders: readonly string[] = []
  /** Charge for storing the data; undefined when nothing is stored. */
  storage: Money | undefined = undefined
  /** Origin of an answer replayed from the response cache. */
  cached: Replayed | undefined = undefined
  /** The answer ends only when its client closes it: a drain does not wait for it. */
  endsOnDrain = false
  status = 0
  outcome: Outcome | undefined = undefined
  /** The failure, before or after the first byte. */
  failure: GatewayError | undefined = undefined
  /** Name of the deepest filter entered, under which a refusal is counted. */
  currentFilter = 'http'
  /** Number of links of the chain entered. */
  filtersEntered = 0

  /** The body. */
  readonly input: ExchangeInput
  #request: Promise<Ops[Op]> | undefined
  readonly #prompt: PromptMeter
  readonly #answer: AnswerMeter
  /** `count` gets the answer. */
  #isCounted = false

  constructor(init: ExchangeInit) {
    const given = init.headers['x-request-id']
    this.id = requestId(typeof given === 'string' ? given : undefined)
    this.snapshot = init.snapshot
    this.endpoint = init.endpoint
    this.method = init.method ?? 'GET'
    this.headers = init.headers
    this.query = init.query
    this.params = init.params ?? NO_PARAMS
    this.signal = init.signal
    this.peer = init.peer ?? ''
    this.port = init.port ?? 0
    this.upgrade = init.upgrade
    this.input = new ExchangeInput(init)
    this.#prompt = init.meters.prompt(this)
    this.#answer = init.meters.answer(this)
    const start = performance.now()
    this.timings = { start, read: start, sent: 0, answered: 0, firstToken: 0, end: 0, stalled: 0 }
  }

  /** The organization whose shares of the process the request takes; '' before it is known. */
  get tenant(): string {
    return this.principal?.orgId ?? ''
  }

  /** The client's address, if known. */
  get clientAddress(): Address | undefined {
    return clientAddress(this.peer, this.header('x-forwarded-for'), this.trustedProxies)
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  /** The parsed body, for endpoints without an operation. May be called once. */
  body(): Promise<unknown> {
    return this.input.read()
  }

  /** Runs a step of the work on the request: through the scheduler where the request is large, else at once. */
  step<T>(work: () => T | Promise<T>): T | Promise<T> {
    return this.input.isLarge ? scheduler.run(this.tenant, work) : work()
  }

  /** The canonical request: read, bounded, parsed, validated and decoded once, on first use. */
  readRequest(): Promise<Ops[Op]> {
    this.#request ??= this.input.read().then(value => {
      this.timings.read = performance.now()
      const body = this.stored ? this.stored.read(value) : value
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

  /** An answer has begun, so no further target is tried: releases the stored request. */
  committed(): void {
    this.outbound.release()
    this.input.release()
  }

  /** The request as a chat request; only for exchanges whose input has been read. */
  get chat(): ChatRequest {
    return this.request as ChatRequest
  }

  /** The operation of the endpoint; only for endpoints that have one. */
  get operation(): Operation {
    return this.endpoint.operation!
  }

  /** The catalogue after the policy of the caller's organization. */
  get catalog(): Catalog {
    const { catalog } = this.snapshot
    return this.policy?.catalog(catalog) ?? catalog
  }

  /** Estimated tokens of the prompt's texts, by the tokenizer of the target; 0 until the body is read. */
  get promptTokens(): number {
    return this.#prompt.tokens
  }

  /** What the answer costs is known without a report of its provider: its model is charged for characters alone. */
  get isCountedAhead(): boolean {
    return this.target?.mapping.model.tokenizer === CHARACTERS
  }

  get streaming(): boolean {
    return this.request !== undefined && 'stream' in this.request && this.request.stream === true
  }

  /**
   * Counts what comes of an answer where it is paid for, once per batch and before anything above gets it: what a filter
   * there keeps or changes has its cost all the same.
   */
  count(batch: readonly Event[]): void {
    this.#isCounted = true
    this.#answer.count(batch)
  }

  /** Records what passes to the client: first token, failure; and counts it where `count` does not. Once per batch. */
  observe(batch: readonly Event[]): void {
    if (!this.#isCounted) this.#answer.count(batch)
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (this.timings.firstToken === 0 && isContent(event)) this.timings.firstToken = performance.now()
      if (event.type === 'start') this.fingerprint = event.fingerprint
      else if (event.type === 'error') this.#fail(event.error)
      else if (event.type === 'finish' && event.reason === 'length') this.stoppedBy ??= this.outbound.limit?.by
    }
  }

  /** After its first event. */
  #fail(error: GatewayError): void {
    this.failure = error
    if (error.billed) this.isCut = true
  }

  /**
   * The provider charges this usage of parts of the request; the caller's fault, or that the caller has left, keeps it from
   * an answer.
   */
  answeredInPart(report: UsageReport, error: GatewayError): void {
    this.atProvider = true
    this.billedFailure = 'parts'
    this.count([report])
    this.failure = error
  }

  /**
   * The answer failed before its first event by what the caller had its model write: these events came of it, and are
   * charged by their report, or as those of an answer that was cut short.
   */
  failedWith(events: readonly Event[], error: GatewayError): void {
    this.billedFailure = 'whole'
    this.count(events)
    this.failure = error
    this.isCut = this.usage.completion === undefined || this.estimated
  }

  /**
   * Whether the caller left, or was cut off, while a provider without a failure had its request: the provider charges
   * for its work in any case.
   */
  get isOwed(): boolean {
    return this.isCut || (this.atProvider && this.signal.reason?.status === CLIENT_CLOSED)
  }

  /**
   * Fills usage that the upstream did not report from the sent and delivered content, and marks it as estimated. For an
   * answer that was `cut`, adds the content delivered since the last report. Without delivered content there is no
   * usage, unless the provider charges for it.
   */
  completeUsage(cut: boolean): void {
    this.#answer.complete(cut)
  }

  /** Usage and cost if the answer were cut short now. */
  get soFar(): { readonly usage: Usage; readonly cost: Cost | null } {
    return this.#answer.soFar
  }

  /** Something of the answer has come that a client can see, though a filter may keep it. */
  get hasContent(): boolean {
    return this.#answer.hasContent
  }

  /** Tokens of all choices so far: reported, and delivered since then. */
  get answerTokens(): number {
    return this.#answer.tokens
  }

  /** Estimate of the prompt with its media, as its target counts, and of what of it may be written to a cache. */
  get promptUsage(): Usage {
    return this.#prompt.usage
  }

  /** Cost of the usage so far at the target's price; null while the price is unknown. */
  get cost(): Cost | null {
    return this.#answer.cost
  }

  /** Price terms besides usage: as requested, later as served. */
  get terms(): Terms {
    const requested = this.request && this.endpoint.operation ? this.operation.terms?.(this.request) : undefined
    const { requests } = this.#answer
    if (this.servedTier === undefined && !requests) return requested ?? {}
    return { tier: this.servedTier ?? requested?.tier, sizes: requested?.sizes, requests }
  }
}
