/** One session: passes events between its client and its provider within rules and money, and ends both sides. */

import type { Message, MessageSocket } from '../core/message-socket.ts'
import type { ProviderSocket } from '../core/ports.ts'
import type { RealtimeOptions, SessionCharges } from '../core/realtime.ts'
import { type Json, objectIn } from '../json/json.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import type { MemoryLease } from '../limits/memory.ts'
import { Channel, type ReadRates } from './channel.ts'
import { ClientEvents, limited } from './client-events.ts'
import { Conversation } from './conversation.ts'
import { errorEvent, newEventId, type ReadEvent, readEvent } from './events.ts'
import { ProviderEvents, type SessionActions } from './provider-events.ts'
import { Responses } from './responses.ts'
import type { firstUpdate, SettingsContext } from './settings.ts'
import { shownEvent } from './shown.ts'

/** WebSocket close codes (RFC 6455 section 7.4.1). */
const NORMAL = 1000
const GOING_AWAY = 1001
const POLICY = 1008
const FAILED = 1011
/** How long the session waits for the end of a response and of transcripts when the client has left. */
const LINGER_MS = 10_000
/** Milliseconds to wait when the gateway stops: half of the gateway's own wait. */
const DRAIN_LINGER_MS = 5_000
const PING_MS = 15_000
const CLOSED = 'it has closed the connection'
/** Ticks from one checkpoint of a running response to the next. */
const TICKS_PER_NOTE = 2

/** Both sockets of a session, and all that it runs with. */
interface SessionOptions {
  readonly client: MessageSocket
  readonly provider: ProviderSocket
  /** The provider's `session.created`. */
  readonly created: ReadEvent
  /** Messages that the provider sent after it, before the session was made. */
  readonly earlier: readonly Message[]
  readonly context: SettingsContext
  /** The gateway's own first update of the settings. */
  readonly first: ReturnType<typeof firstUpdate>
  readonly charges: SessionCharges
  readonly limits: RealtimeOptions
  /** Organization whose share of the event loop large events take. */
  readonly tenant: string
  /** How fast both sides are read, with those of the organization's other sessions. */
  readonly readRates: ReadRates
  readonly lease: MemoryLease
  readonly now: () => number
  /** Why the caller may not go on, by the rules in force now. */
  readonly denied: () => Promise<GatewayError | undefined>
  readonly log: { warn(fields: object, message: string): void }
}

/** Runs from its construction until `ended` resolves; `tick` is called once a second. */
export class Session {
  /** Why the session failed; undefined where it did not. */
  failure: GatewayError | undefined
  /** Resolves when both sides are closed and every charge is settled. */
  readonly ended: Promise<void>
  readonly #limits: RealtimeOptions
  readonly #tenant: string
  readonly #lease: MemoryLease
  readonly #log: SessionOptions['log']
  readonly #denied: SessionOptions['denied']
  readonly #client: Channel
  readonly #provider: Channel
  readonly #events: ClientEvents
  readonly #responses: Responses
  #resolve!: () => void
  #clientOpen = true
  #providerOpen = true
  #ending = false
  #linger: NodeJS.Timeout | undefined
  #lingerMs = LINGER_MS
  #isSettled = false
  readonly #startedAt = performance.now()
  #pingAt = performance.now() + PING_MS * Math.random()
  #ticks = 0
  /** Resolves the wait for the provider. */
  #providerDone: (() => void) | undefined
  /** A response is being held for. */
  #holding: Promise<void> | undefined

  constructor(options: SessionOptions) {
    const { client, provider, context, created, first, limits, charges, tenant, now } = options
    // The options hold what the provider sent first, of any size: they are not kept.
    this.#limits = limits
    this.#tenant = tenant
    this.#lease = options.lease
    this.#log = options.log
    this.#denied = options.denied
    this.ended = new Promise(resolve => {
      this.#resolve = resolve
    })
    const { mapping } = context.target
    const conversation = new Conversation(
      mapping.contextLength ?? mapping.model.contextLength,
      mapping.model.imageTokens,
    )
    const opened = objectIn(created.event.session)
    const { session, settings } = first
    const eventId = newEventId()
    this.#events = new ClientEvents(context, conversation, settings, eventId)
    conversation.settings(opened)
    conversation.settings(session)
    this.#responses = new Responses({
      ...{ charges, form: context.form, now, most: limits.spend },
      longest: mapping.contextLength ?? 0,
      cancel: () => this.#cancelResponse(),
    })
    const failed = (cause: unknown) => this.#fail(asError(cause))
    const events = new ProviderEvents({
      tenant,
      ...{ context, events: this.#events, responses: this.#responses, mask: provider.mask },
      session: this.#actions(),
    })
    this.#client = new Channel(
      client,
      {
        failed,
        take: message => this.#fromClient(message),
        closed: code => this.#clientClosed(code),
        stalled: () => this.#end(POLICY, 'slow_client', 'The client takes nothing of what is sent to it.'),
        flooded: () =>
          this.#end(POLICY, 'too_many_frames', 'The client sends too many pings, pongs or empty messages.'),
      },
      options.readRates.client,
    )
    this.#provider = new Channel(
      provider.socket,
      {
        failed,
        take: message => events.take(message).finally(() => this.#stopWaiting()),
        closed: code => this.#providerClosed(code),
        stalled: () => this.#upstreamFailed('it takes nothing of what is sent to it'),
        flooded: () => this.#upstreamFailed('it sends too many pings, pongs or empty messages'),
      },
      options.readRates.provider,
    )
    this.#provider.send(JSON.stringify({ type: 'session.update', event_id: eventId, session }))
    this.#client.send(shownEvent(created.event, created.text, context, settings))
    this.#client.open(this.#provider)
    this.#provider.open(this.#client, options.earlier)
  }

  /** To be called about once a second. */
  tick(now: number): void {
    const limits = this.#limits
    for (const side of [this.#client, this.#provider]) side.check(now)
    this.#lease.release()
    const isFull = !this.#lease.grow(this.#client.held + this.#provider.held)
    if (this.#ending) return
    if (isFull) this.#end(FAILED, 'overloaded', 'There is no memory for what waits. Open another session.')
    else if (now - this.#startedAt >= limits.session) {
      this.#end(NORMAL, 'session_expired', 'The session has lasted as long as one may. Open another one.')
    } else if (now - Math.max(this.#client.lastAt, this.#provider.lastAt) >= limits.idle) {
      this.#end(NORMAL, 'session_idle', 'Nothing was sent for a long time. Open another session.')
    } else {
      void this.#judge()
      if (++this.#ticks % TICKS_PER_NOTE === 0) this.#responses.note()
      if (now >= this.#pingAt) this.#ping(now)
    }
  }

  /** Ends the session where the rules of its caller have changed and deny it; never rejects. */
  async #judge(): Promise<void> {
    try {
      const error = await this.#denied()
      if (error) this.#end(POLICY, error.code ?? 'forbidden', error.message)
    } catch (thrown) {
      this.#fail(asError(thrown))
    }
  }

  #ping(now: number): void {
    this.#pingAt = now + PING_MS
    if (this.#client.awaitsPong) this.#end(FAILED, 'no_pong', 'The client answers no pings.')
    else if (this.#provider.awaitsPong) this.#upstreamFailed('it answers no pings')
    else {
      this.#client.ping()
      this.#provider.ping()
    }
  }

  /** Ends the session because the gateway stops. */
  shutDown(): void {
    this.#lingerMs = DRAIN_LINGER_MS
    this.#end(GOING_AWAY, 'server_shutting_down', 'The gateway is shutting down. Open another session.')
  }

  #actions(): SessionActions {
    return {
      isEnding: () => this.#ending,
      isOver: () => this.#provider.ended,
      toClient: text => {
        if (this.#clientOpen) this.#client.send(text)
      },
      respond: (eventId, event) => this.#respond(eventId, event, event),
      refused: error => this.#refused(error, null),
      endForPolicy: reason => this.#close(POLICY, reason),
      upstreamFailed: what => this.#upstreamFailed(what),
    }
  }

  async #fromClient(message: Message): Promise<void> {
    if (message === undefined) return this.#sendError('invalid_frame', 'Events are JSON in text frames.')
    const reading = readEvent(message, this.#tenant)
    const read = reading instanceof Promise ? await reading : reading
    // A response that the provider's events began reads no more than it is held for.
    while (this.#holding) await this.#holding
    if (this.#ending) return
    const taken = this.#events.take(read?.event)
    if (taken.kind === 'pass') {
      if (!this.#provider.ended) this.#provider.send(JSON.stringify(taken.event))
    } else if (taken.kind === 'error') this.#sendError(taken.code, taken.message, taken.of, taken.param)
    else if (this.#responses.isRunning) {
      const of = this.#events.clientIdOf(taken.eventId)
      this.#sendError('response_in_flight', 'A response is being made: wait for its end, or cancel it.', of)
    } else await this.#respond(taken.eventId, taken.own, taken.event)
  }

  /** The only way of a `response.create` to the provider, as `event` or limited: once the cost of `own` is held. */
  #respond(eventId: string, own: Readonly<Json>, event: Readonly<Json>): Promise<void> {
    this.#holding = this.#holdAndSend(eventId, own, event).finally(() => {
      this.#holding = undefined
    })
    return this.#holding
  }

  async #holdAndSend(eventId: string, own: Readonly<Json>, event: Readonly<Json>): Promise<void> {
    const of = this.#events.clientIdOf(eventId)
    if (this.#responses.isSpent) {
      this.#sendError('session_spend_limit', 'The session has spent what one may spend. Open another one.', of)
      return
    }
    const judged = this.#judge()
    let sent = event
    try {
      const limit = await this.#responses.begin(eventId, this.#events.planned(own))
      await judged
      if (limit !== undefined) sent = limited(event, limit)
    } catch (thrown) {
      this.#refused(asError(thrown), of)
      this.#stopWaiting()
      return
    }
    const isHeld = this.#responses.isHeld(eventId)
    if (isHeld && !this.#ending && this.#providerOpen) this.#provider.send(JSON.stringify(sent))
    else if (this.#responses.refused(eventId)) this.#stopWaiting()
  }

  #cancelResponse(): void {
    this.#provider.send(JSON.stringify({ type: 'response.cancel' }))
    this.#sendError('insufficient_credits', 'The response was cancelled: there is no money for more of it.')
  }

  /** Reports a refusal of money, and ends the session where no later request can succeed. */
  #refused(error: GatewayError, of: string | null): void {
    this.#sendError(error.code ?? 'internal', error.message, of)
    if (error.status === 401 || error.status === 403 || error.status === 410) this.#close(POLICY, 'the key has ended')
    else if (error.status >= 500) this.#fail(error)
  }

  #sendError(code: string, message: string, of: string | null = null, param: string | null = null): void {
    if (this.#clientOpen) this.#client.send(errorEvent(code, message, of, param))
  }

  #clientClosed(code: number): void {
    this.#clientOpen = false
    if (!this.#ending) this.#close(code === NORMAL || code === GOING_AWAY ? NORMAL : code, '')
    this.#resolveIfClosed()
  }

  #providerClosed(code: number): void {
    this.#providerOpen = false
    // Providers end sessions that have lasted as long as theirs may (OpenAI: 60 minutes).
    if (code === GOING_AWAY)
      this.#end(NORMAL, 'session_expired', 'The provider has ended the session. Open another one.')
    else if (!this.#ending) this.#upstreamFailed(CLOSED)
    this.#providerDone?.()
    this.#resolveIfClosed()
  }

  #upstreamFailed(what: string): void {
    if (this.#ending) return
    this.failure = errors.invalidAnswer(what)
    this.#end(FAILED, 'upstream_unavailable', `The provider of the session has failed: ${what}.`)
  }

  #fail(error: GatewayError): void {
    if (this.#ending) return
    this.failure = error
    if (error.status === 500) this.#log.warn({ err: error.cause }, 'realtime session failed')
    this.#end(FAILED, error.code ?? 'internal', error.message)
  }

  #end(close: number, code: string, message: string): void {
    if (this.#ending) return
    this.#sendError(code, message)
    this.#close(close, code)
  }

  /** A response or a transcript is being made, or one of committed audio will be. */
  get #isProviderBusy(): boolean {
    return this.#responses.isRunning || this.#responses.awaitsTranscripts || this.#events.awaitsTranscript
  }

  #stopWaiting(): void {
    if (!this.#isProviderBusy) this.#providerDone?.()
  }

  /** Closes the client's side, waits for the end of what runs, and closes the provider's. */
  #close(code: number, reason: string): void {
    if (this.#ending) return
    this.#ending = true
    this.#client.stop()
    if (this.#clientOpen) this.#client.socket.close(code, reason)
    void this.#finish()
      .catch(thrown => {
        this.failure ??= asError(thrown)
        this.#log.warn({ err: thrown }, 'realtime settlement failed; its hold will expire')
      })
      .then(() => {
        this.#isSettled = true
        this.#resolveIfClosed()
      })
  }

  async #finish(): Promise<void> {
    const gone = this.#providerOpen ? undefined : errors.invalidAnswer(CLOSED)
    if (this.#isProviderBusy && this.#providerOpen && !this.failure) {
      if (this.#responses.isRunning) this.#provider.send(JSON.stringify({ type: 'response.cancel' }))
      await new Promise<void>(resolve => {
        this.#providerDone = resolve
        this.#linger = setTimeout(resolve, this.#lingerMs)
      })
      clearTimeout(this.#linger)
      this.#providerDone = undefined
    }
    this.#provider.stop()
    if (this.#providerOpen) this.#provider.socket.close(NORMAL, '')
    const failure = this.failure ?? gone
    await this.#responses.abandon(failure ? 'error' : 'aborted', failure ?? errors.aborted())
  }

  #resolveIfClosed(): void {
    if (!this.#isSettled || this.#clientOpen || this.#providerOpen) return
    this.#lease.release()
    this.#resolve()
  }
}
