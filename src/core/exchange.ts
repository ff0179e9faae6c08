/** One request's life, pinned to one snapshot. */

import { requestId, shortId } from '../lib/id.ts'
import { type Address, type AddressRange, clientAddress } from './address.ts'
import { AnswerUsage } from './answer-usage.ts'
import type { Attempt } from './attempt.ts'
import type { Cancellation } from './cancel.ts'
import type { Catalog } from './catalog.ts'
import type { Codec } from './codec.ts'
import type { Endpoint } from './endpoint.ts'
import { CLIENT_CLOSED, type GatewayError } from './error.ts'
import { type Event, isContent } from './event.ts'
import type { AnswerKeeper } from './kept-answer.ts'
import type { MessageSocket } from './message-socket.ts'
import type { Cost, Money, Terms } from './money.ts'
import type { Operation } from './operation.ts'
import type { ChatRequest, Op, Ops } from './ops.ts'
import type { Access, Policy } from './policy.ts'
import type { HealingSkipped, Principal, Replayed } from './ports.ts'
import type { Body, RawStrings } from './raw-strings.ts'
import type { Params } from './router.ts'
import type { Snapshot } from './snapshot.ts'
import type { Timings } from './timings.ts'
import type { FanOut, NativeRequest, RequestPart, Target, WireRequest } from './translator.ts'
import { CHARACTERS, estimateTokens, type Usage } from './usage.ts'

/** The limit on each choice that is sent in place of the caller's, in tokens, and what it comes from. */
export interface OutputLimit {
  readonly tokens: number
  readonly by: StoppedBy
}
/** What ends an answer early: the organization's credits or plan, or a limit of its own. */
export type StoppedBy = 'credit' | 'limit'

/** Makes the `outbound` of an exchange, with its output limit. */
export interface RequestEncoding {
  encode(): void
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>
export type Outcome = 'ok' | 'error' | 'aborted'

export interface ExchangeInit {
  snapshot: Snapshot
  endpoint: Endpoint
  /** Of the request; GET where nothing is said. */
  method?: string
  headers: Headers
  /** What stands behind the `?`, undecoded. */
  query: string
  /** Of the endpoint's path. */
  params?: Params
  signal: Cancellation
  /** Of the other end of the connection; '' when it is not known. */
  peer?: string
  /** Of this end of it, by which clients on this machine reach the listener; 0 when it is not known. */
  port?: number
  /** Reads, bounds and parses the body; called at most once. */
  body: () => Promise<Body>
  /** See `Exchange.upgrade`. */
  upgrade?: Upgrade
}

/**
 * Answers a request for a WebSocket: from then on its status stands, and messages wait until they are read. `limit`:
 * bytes of one. `protocol`: what is chosen of those that the client offers. Throws a GatewayError when it has left.
 */
export type Upgrade = (options: { readonly limit: number; readonly protocol: string }) => MessageSocket

const NO_PARAMS: Params = Object.freeze({})
const NO_PROXIES: readonly AddressRange[] = Object.freeze([])
const unknownSpeed = (): number => 0

export class Exchange {
  /** The caller's `x-request-id`, or a new one. Not unique: a caller may repeat it. */
  readonly id: string
  /** Unique; the key of everything that is kept about this request. */
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
  /** Of a request that asks for a WebSocket, at an endpoint that has them; called at most once. */
  readonly upgrade: Upgrade | undefined
  /** Unix milliseconds of arrival. */
  readonly at: number = Date.now()
  readonly timings: Timings

  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly AddressRange[] = NO_PROXIES
  principal: Principal | undefined = undefined
  /** The organization's policy, and what the key may call under it; both are there when the principal is. */
  policy: Policy | undefined = undefined
  access: Access | undefined = undefined
  /** The canonical request, once `input()` has resolved. */
  request: Ops[Op] | undefined = undefined
  /** The body as the client sent it, for codecs whose wire providers speak too; see `NativeForm`. */
  native: NativeRequest | undefined = undefined
  /** Finds what the request goes on from, and keeps its answer; undefined where the project keeps none. */
  keeper: AnswerKeeper | undefined = undefined
  /** False where the client's wire shows reasoning on demand only and this request demands none. Set by the codec. */
  showsReasoning = true
  /** The model as the request names it, without a provider; empty until it is known. */
  requestedModel = ''
  requestedProvider: string | null = null
  target: Target | undefined = undefined
  outbound: WireRequest | undefined = undefined
  /** All of several requests that are sent in the place of one, `outbound` first; undefined for one alone. */
  outboundParts: readonly RequestPart[] | undefined = undefined
  /** What puts their answers together. */
  fanOut: FanOut | undefined = undefined
  /** Of the attempt that runs; undefined when it has what the caller has set. */
  outputLimit: OutputLimit | undefined = undefined
  /** Makes `outbound` anew, with the output limit. Set by the filter that encodes. */
  encoding: RequestEncoding | undefined = undefined
  /** The provider has all of the request of the attempt that runs. */
  atProvider = false
  /** The gateway has ended the answer before its model did. */
  isCut = false
  /** What ended the answer, or bounded it until it ended. */
  stoppedBy: StoppedBy | undefined = undefined
  /** Why healing was requested but skipped; undefined when the answer was checked. */
  healingSkipped: HealingSkipped | undefined = undefined
  /** The prompt of the attempt that runs was marked for the provider's cache by the gateway. */
  autoCached = false
  /** Tokens per second that the target of the attempt usually writes. */
  usualSpeed: () => number = unknownSpeed
  /** JSON values that the body holds. */
  values = 0
  /** Frees what is held of a body beside the request. */
  #releaseBody: (() => void) | undefined = undefined
  /** Long strings of the body, until no target is tried again. */
  verbatim: RawStrings | undefined = undefined
  readonly attempts: Attempt[] = []
  readonly usage: Usage = {}
  /** True when any part of `usage` is our estimate. */
  estimated = false
  servedTier: string | undefined = undefined
  /** What the provider says of the system that answered. */
  fingerprint: string | undefined = undefined
  /** Headers of a 200 that do not depend on the provider: a stream may begin before that is known. */
  replyHeaders: readonly string[] = []
  /** Charged for keeping the data; undefined when nothing is kept. */
  storage: Money | undefined = undefined
  /** What a replay from the response cache was first answered by. */
  cached: Replayed | undefined = undefined
  /** Its answer lasts for as long as its client wants: a drain does not wait for it. */
  endsOnDrain = false
  status = 0
  outcome: Outcome | undefined = undefined
  /** Why it failed, before or after the first byte. */
  failure: GatewayError | undefined = undefined
  /** Name of the deepest filter that was entered, so that a refusal can be counted under it. */
  currentFilter = 'http'
  /** How many links of the chain were entered. */
  filtersEntered = 0

  readonly #body: () => Promise<Body>
  #input: Promise<Ops[Op]> | undefined
  #promptCharacters: number | undefined
  readonly #answer = new AnswerUsage(this)

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
    this.#body = init.body
    const start = performance.now()
    this.timings = { start, read: start, sent: 0, answered: 0, firstToken: 0, end: 0, stalled: 0 }
  }

  /** Of the client, as far as it is known. */
  get clientAddress(): Address | undefined {
    return clientAddress(this.peer, this.header('x-forwarded-for'), this.trustedProxies)
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  /** The parsed body, for endpoints without an operation. May be called once. */
  body(): Promise<unknown> {
    return this.#body().then(({ value }) => value)
  }

  /** The canonical request: read, bounded, parsed, validated and decoded once, on first use. */
  input(): Promise<Ops[Op]> {
    this.#input ??= this.#body().then(({ value, verbatim, values = 0, release }) => {
      this.#releaseBody = release
      this.timings.read = performance.now()
      this.verbatim = verbatim
      this.values = values
      return this.keeper ? this.keeper.read(value).then(body => this.#decode(body)) : this.#decode(value)
    })
    return this.#input
  }

  #decode(body: unknown): Ops[Op] {
    this.request = this.decoded(body, this.endpoint.codec)
    return this.request
  }

  /** The canonical request of a body that `codec` can read, with what it says of its routing. */
  decoded<O extends Op>(body: unknown, codec: Codec<O>): Ops[O] {
    const routed = this.endpoint.operation?.routed?.(body)
    return routed ? Object.assign(codec.decode(routed.body, this), routed.fields) : codec.decode(body, this)
  }

  /** An answer has begun, so that no target is tried again: nothing is kept to send any more. */
  committed(): void {
    this.outbound = undefined
    this.outboundParts = undefined
    this.encoding = undefined
    this.verbatim = undefined
    this.#releaseBody?.()
    this.#releaseBody = undefined
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

  /** Estimated tokens of the prompt, by the tokenizer of the target; 0 until the body is read. Measured once. */
  get promptTokens(): number {
    if (!this.request) return 0
    this.#promptCharacters ??= this.operation.promptCharacters(this.request)
    // A model that is charged for characters has no other tokens.
    const isExact = this.target?.mapping.model.tokenizer === CHARACTERS
    return isExact ? this.#promptCharacters : estimateTokens(this.#promptCharacters)
  }

  get streaming(): boolean {
    return this.request !== undefined && 'stream' in this.request && this.request.stream === true
  }

  /** Takes note of what passes to the client: usage, first token, failure. Called once for every batch. */
  observe(batch: readonly Event[]): void {
    for (let at = 0; at < batch.length; at++) {
      const event = batch[at]!
      if (this.timings.firstToken === 0 && isContent(event)) this.timings.firstToken = performance.now()
      switch (event.type) {
        case 'text':
        case 'refusal':
        case 'reasoning':
          this.#answer.delivered(event.text.length)
          break
        case 'tool':
          this.#answer.delivered((event.args?.length ?? 0) + (event.name?.length ?? 0))
          break
        case 'usage':
          this.#answer.reported(event)
          break
        case 'image':
          this.#answer.image()
          break
        case 'bytes':
          this.#answer.bytes(event)
          break
        case 'start':
          this.#answer.begin()
          this.fingerprint = event.fingerprint
          break
        case 'finish':
          if (event.free) this.#answer.isFree = true
          if (event.reason === 'length') this.stoppedBy ??= this.outputLimit?.by
          break
        case 'tier':
          this.servedTier = event.tier
          this.#answer.reprice()
          break
        case 'error':
          this.failure = event.error
          break
      }
    }
  }

  /**
   * The caller has left, or was cut off, while a provider that has not failed had its request: that provider is paid
   * for what it has done, whoever gets to see it.
   */
  get isOwed(): boolean {
    return this.isCut || (this.atProvider && this.signal.reason?.status === CLIENT_CLOSED)
  }

  /**
   * Fills what the upstream did not report from what was sent and delivered, and marks it as estimated. Of an answer
   * that was `cut` short, what was delivered since the last report is added to it; nothing delivered is nothing used,
   * unless the provider is owed for it.
   */
  completeUsage(cut: boolean): void {
    this.#answer.complete(cut)
  }

  /** Usage and cost if the answer were cut short now. */
  get soFar(): { readonly usage: Usage; readonly cost: Cost | null } {
    return this.#answer.soFar
  }

  /** Tokens of all choices so far: as reported, as delivered, and thought out of sight. */
  get answerTokens(): number {
    return this.#answer.tokens
  }

  /** The prompt with its media, as its target counts them; estimates. */
  get promptUsage(): Usage {
    return this.#answer.prompt
  }

  /** Cost of the usage so far at the target's price; null while the price is unknown. */
  get cost(): Cost | null {
    return this.#answer.cost
  }

  /** What the price depends on besides usage: as requested, then as served once that is known. */
  get terms(): Terms {
    const asked = this.request && this.endpoint.operation ? this.operation.terms?.(this.request) : undefined
    return this.servedTier === undefined ? (asked ?? {}) : { ...asked, tier: this.servedTier }
  }
}
