/** One session: the events of its client go to its provider, and the other way, as far as rules and money let them. */
import { asError, errors, type GatewayError } from '../core/error.ts'
import { isObject, type Json } from '../core/json.ts'
import type { MemoryLease } from '../core/memory-budget.ts'
import type { MessageSocket } from '../core/message-socket.ts'
import type { ProviderSocket } from '../core/ports.ts'
import type { RealtimeOptions, SessionCharges } from '../core/realtime.ts'
import { Channel } from './channel.ts'
import { ClientEvents } from './client-events.ts'
import { Conversation } from './conversation.ts'
import { errorEvent, newEventId, type RealtimeEvent, readEvent } from './events.ts'
import { Responses } from './responses.ts'
import type { firstUpdate, SettingsContext } from './settings.ts'
import { shownEvent } from './shown.ts'

/** WebSocket close codes (RFC 6455 section 7.4.1). */
const NORMAL = 1000
const GOING_AWAY = 1001
const POLICY = 1008
const FAILED = 1011
/** How long the end of a response is waited for when its client has left. */
const LINGER_MS = 10_000
/** The same when the gateway stops, which itself waits for no longer than twice that. */
const DRAIN_LINGER_MS = 5_000
const PING_MS = 15_000
/** Half of a note of what a response has come to. */
const TICKS_PER_NOTE = 2

export interface SessionOptions {
  readonly client: MessageSocket
  readonly provider: ProviderSocket
  /** The provider's `session.created`. */
  readonly created: RealtimeEvent
  /** What came behind it already. */
  readonly earlier: readonly (string | undefined)[]
  readonly context: SettingsContext
  /** The gateway's own first change of the settings. */
  readonly first: ReturnType<typeof firstUpdate>
  readonly charges: SessionCharges
  readonly limits: RealtimeOptions
  readonly lease: MemoryLease
  readonly now: () => number
  readonly log: { warn(fields: object, message: string): void }
}

export class Session {
  /** Why it failed; undefined where it did not. */
  failure: GatewayError | undefined
  /** Resolves when both sides are closed, and all is settled. */
  readonly ended: Promise<void>
  readonly #options: SessionOptions
  readonly #client: Channel
  readonly #provider: Channel
  readonly #events: ClientEvents
  readonly #conversation: Conversation
  readonly #responses: Responses
  #resolve!: () => void
  #clientOpen = true
  #providerOpen = true
  #ending = false
  /** Speech was committed while a response ran: the next response answers it. */
  #isResponseDue = false
  #linger: NodeJS.Timeout | undefined
  #lingerMs = LINGER_MS
  #isSettled = false
  readonly #startedAt = performance.now()
  #pingAt = performance.now() + PING_MS * Math.random()
  #ticks = 0
  #responseEnded: (() => void) | undefined

  constructor(options: SessionOptions) {
    const { client, provider, context, created, first, limits, charges, now } = options
    this.#options = options
    this.ended = new Promise(resolve => {
      this.#resolve = resolve
    })
    const { mapping } = context.target
    this.#conversation = new Conversation(mapping.contextLength ?? mapping.model.contextLength)
    const opened = isObject(created.session) ? created.session : {}
    const { session, settings } = first
    this.#events = new ClientEvents(context, this.#conversation, settings)
    this.#events.apply(settings)
    this.#conversation.settings(opened)
    this.#conversation.settings(session)
    this.#responses = new Responses({ charges, form: context.form, now, most: limits.spend })
    const failed = (cause: unknown) => this.#fail(asError(cause))
    this.#client = new Channel(client, {
      failed,
      take: text => this.#fromClient(text),
      closed: code => this.#clientClosed(code),
      stalled: () => this.#end(POLICY, 'slow_client', 'The client takes nothing of what is sent to it.'),
    })
    this.#provider = new Channel(provider.socket, {
      failed,
      take: text => this.#fromProvider(text),
      closed: () => this.#providerClosed(),
      stalled: () => this.#upstreamFailed('it takes nothing of what is sent to it'),
    })
    const eventId = newEventId()
    this.#events.updates.push({ eventId, isOwn: true, before: settings })
    this.#provider.send(JSON.stringify({ type: 'session.update', event_id: eventId, session }))
    this.#client.send(this.#shown(created, JSON.stringify(created)))
    this.#client.open(this.#provider)
    this.#provider.open(this.#client, options.earlier)
  }

  /** To be called about once a second. */
  tick(now: number): void {
    const { limits, lease } = this.#options
    for (const side of [this.#client, this.#provider]) side.check(now)
    lease.release()
    const isFull = !lease.grow(this.#client.held + this.#provider.held)
    if (this.#ending) return
    if (isFull) this.#end(FAILED, 'overloaded', 'There is no memory for what waits. Open another session.')
    else if (now - this.#startedAt >= limits.session) {
      this.#end(NORMAL, 'session_expired', 'The session has lasted as long as one may. Open another one.')
    } else if (now - Math.max(this.#client.lastAt, this.#provider.lastAt) >= limits.idle) {
      this.#end(NORMAL, 'session_idle', 'Nothing was sent for a long time. Open another session.')
    } else {
      if (++this.#ticks % TICKS_PER_NOTE === 0) this.#responses.note()
      if (now >= this.#pingAt) this.#ping(now)
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

  /** The gateway stops. */
  shutDown(): void {
    this.#lingerMs = DRAIN_LINGER_MS
    this.#end(GOING_AWAY, 'server_shutting_down', 'The gateway is shutting down. Open another session.')
  }

  async #fromClient(text: string | undefined): Promise<void> {
    const taken = this.#events.take(text)
    if (taken.kind === 'pass') this.#provider.send(taken.text)
    else if (taken.kind === 'error') this.#sendError(taken.code, taken.message, taken.of, taken.param)
    else if (this.#responses.isRunning) {
      const of = this.#events.clientIdOf(taken.eventId)
      this.#sendError('response_in_flight', 'A response is being made: wait for its end, or cancel it.', of)
    } else await this.#respond(taken.eventId, taken.text, taken.event)
  }

  /** The money gate: nothing that costs goes up but through here. */
  async #respond(eventId: string, text: string, event: Readonly<Json>): Promise<void> {
    const of = this.#events.clientIdOf(eventId)
    if (this.#responses.isSpent) {
      this.#sendError('session_spend_limit', 'The session has spent what one may spend. Open another one.', of)
      return
    }
    try {
      await this.#responses.begin(eventId, this.#events.expected(event), this.#events.settings.outputRate)
    } catch (thrown) {
      this.#refused(asError(thrown), of)
      return
    }
    if (!this.#ending && this.#providerOpen) this.#provider.send(text)
    else if (this.#responses.refused(eventId)) this.#responseEnded?.()
  }

  /** No money, or a key that has ended. */
  #refused(error: GatewayError, of: string | null): void {
    this.#sendError(error.code ?? 'internal', error.message, of)
    if (error.status === 401 || error.status === 403 || error.status === 410) this.#close(POLICY, 'the key has ended')
    else if (error.status >= 500) this.#fail(error)
  }

  async #fromProvider(text: string | undefined): Promise<void> {
    const shown = text === undefined ? undefined : this.#options.provider.masked(text)
    const event = shown === undefined ? undefined : readEvent(shown)
    if (!event) {
      this.#upstreamFailed('it sends what is no event')
      return
    }
    const passed = await this.#handle(event, shown!)
    if (passed !== undefined && this.#clientOpen) this.#client.send(passed)
  }

  /** What the client gets of an event; undefined for nothing. */
  async #handle(event: RealtimeEvent, text: string): Promise<string | undefined> {
    switch (event.type) {
      case 'rate_limits.updated':
        return undefined
      case 'session.updated':
        return this.#events.updates.shift()?.isOwn ? undefined : this.#shown(event, text)
      case 'input_audio_buffer.committed':
        await this.#audioCommitted(event, text)
        return undefined
      case 'conversation.item.input_audio_transcription.completed':
        return this.#transcriptCompleted(event, text)
      case 'conversation.item.input_audio_transcription.failed':
        this.#responses.transcriptFailed(event.item_id)
        return text
      case 'response.created':
        if (!this.#responses.created(isObject(event.response) ? event.response : {})) {
          this.#upstreamFailed('it makes a response that nobody has asked for')
          return undefined
        }
        return this.#shown(event, text)
      case 'response.done':
        return this.#done(event, text)
      case 'error':
        return this.#providerError(event)
      default:
        return event.type.startsWith('response.') && typeof event.delta === 'string'
          ? this.#delta(event.type, event.delta, text)
          : this.#shown(event, text)
    }
  }

  async #delta(type: string, delta: string, text: string): Promise<string | undefined> {
    if (this.#responses.isCancelled) return undefined
    if (await this.#responses.delta(type, delta)) return text
    this.#provider.send(JSON.stringify({ type: 'response.cancel' }))
    this.#sendError('insufficient_credits', 'The response was cancelled: there is no money for more of it.')
    return undefined
  }

  async #done(event: RealtimeEvent, text: string): Promise<string | undefined> {
    const usage = await this.#responses.done(isObject(event.response) ? event.response : {})
    if (usage === 'duplicate') return undefined
    if (usage === 'unrequested') {
      this.#upstreamFailed('it ends a response that nobody has asked for')
      return undefined
    }
    if (usage === 'unreadable') {
      this.#upstreamFailed('the usage of a response cannot be read')
      return undefined
    }
    if (usage.prompt !== undefined) this.#conversation.answered(usage)
    this.#responseEnded?.()
    // The client has it before anything that follows.
    if (this.#clientOpen) this.#client.send(this.#shown(event, text))
    if (this.#isResponseDue && !this.#ending) await this.#createResponse()
    return undefined
  }

  async #audioCommitted(event: RealtimeEvent, text: string): Promise<void> {
    const { settings } = this.#events
    const seconds = this.#conversation.committed()
    const isByClient = this.#events.commits > 0
    if (isByClient) this.#events.commits--
    if (settings.transcription) {
      try {
        await this.#responses.expectTranscript(event.item_id, seconds, settings.transcription)
      } catch (thrown) {
        this.#refused(asError(thrown), null)
        // What its provider has begun cannot be stopped.
        this.#close(POLICY, 'no money for transcripts')
        return
      }
    }
    if (this.#clientOpen) this.#client.send(text)
    if (isByClient || !settings.createsResponses || this.#options.context.transcribes) return
    if (this.#responses.isRunning) this.#isResponseDue = true
    else await this.#createResponse()
  }

  /** Answers what was said, as a provider would by itself. */
  async #createResponse(): Promise<void> {
    this.#isResponseDue = false
    const eventId = newEventId()
    const event = { type: 'response.create', event_id: eventId }
    await this.#respond(eventId, JSON.stringify(event), event)
  }

  async #transcriptCompleted(event: RealtimeEvent, text: string): Promise<string | undefined> {
    const { transcription } = this.#events.settings
    if (!transcription) return text
    try {
      await this.#responses.transcriptCompleted(event, transcription)
      return text
    } catch (thrown) {
      this.#refused(asError(thrown), null)
      this.#close(POLICY, 'no money for transcripts')
      return undefined
    }
  }

  #providerError(event: RealtimeEvent): string | undefined {
    const error: Json = isObject(event.error) ? event.error : {}
    const { event_id: of, code } = error
    const updates = this.#events.updates
    const at = typeof of === 'string' ? updates.findIndex(({ eventId }) => eventId === of) : -1
    const update = at < 0 ? undefined : updates.splice(at, 1)[0]
    if (update && !update.isOwn) this.#events.apply(update.before)
    this.#responses.refused(of)
    if (code === 'input_audio_buffer_commit_empty' && this.#events.commits > 0) this.#events.commits--
    const shown = JSON.stringify({ ...event, error: { ...error, event_id: this.#events.clientIdOf(of) } })
    if (!update?.isOwn) return shown
    // Without it the provider would answer by itself, past the gate.
    if (this.#clientOpen) this.#client.send(JSON.stringify({ ...event, error: { ...error, event_id: null } }))
    this.#upstreamFailed('it refuses the settings of the session')
    return undefined
  }

  #shown(event: RealtimeEvent, text: string): string {
    return shownEvent(event, text, this.#options.context, this.#events.settings)
  }

  #sendError(code: string, message: string, of: string | null = null, param: string | null = null): void {
    if (this.#clientOpen) this.#client.send(errorEvent(code, message, of, param))
  }

  #clientClosed(code: number): void {
    this.#clientOpen = false
    if (!this.#ending) this.#close(code === NORMAL || code === GOING_AWAY ? NORMAL : code, '')
    this.#resolveIfClosed()
  }

  #providerClosed(): void {
    this.#providerOpen = false
    if (!this.#ending) this.#upstreamFailed('it has closed the connection')
    this.#responseEnded?.()
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
    if (error.status === 500) this.#options.log.warn({ err: error.cause }, 'realtime session failed')
    this.#end(FAILED, error.code ?? 'internal', error.message)
  }

  #end(code: number, name: string, message: string): void {
    if (this.#ending) return
    this.#sendError(name, message)
    this.#close(code, name)
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
        this.#options.log.warn({ err: thrown }, 'realtime settlement failed; its hold will expire')
      })
      .then(() => {
        this.#isSettled = true
        this.#resolveIfClosed()
      })
  }

  async #finish(): Promise<void> {
    if (this.#responses.isRunning && this.#providerOpen && !this.failure) {
      this.#provider.send(JSON.stringify({ type: 'response.cancel' }))
      await new Promise<void>(resolve => {
        this.#responseEnded = resolve
        this.#linger = setTimeout(resolve, this.#lingerMs)
      })
      clearTimeout(this.#linger)
      this.#responseEnded = undefined
    }
    this.#provider.stop()
    if (this.#providerOpen) this.#provider.socket.close(NORMAL, '')
    await this.#responses.abandon(this.failure ? 'error' : 'aborted', this.failure ?? errors.aborted())
  }

  #resolveIfClosed(): void {
    if (!this.#isSettled || this.#clientOpen || this.#providerOpen) return
    this.#options.lease.release()
    this.#resolve()
  }
}
