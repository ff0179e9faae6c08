/** Events of providers: most are passed on, some change the session, and some are charged for. */

import type { Message } from '../core/message-socket.ts'
import { type Json, objectIn } from '../json/json.ts'
import { keyWithin } from '../json/text-key.ts'
import { asError, type GatewayError } from '../lib/error.ts'
import { type Mask, PiecewiseMasks } from '../secrets/mask.ts'
import type { ClientEvents } from './client-events.ts'
import { newEventId, type ReadEvent, type RealtimeEvent, readEvent } from './events.ts'
import type { Responses } from './responses.ts'
import type { SettingsContext } from './settings.ts'
import { shownEvent, withShownError } from './shown.ts'

/** Actions of a provider's event on its session. */
export interface SessionActions {
  isEnding(): boolean
  /** Whether the session is settled, or about to be, so that no further event of the provider counts. */
  isOver(): boolean
  /** Sends nothing to a client that has left. */
  toClient(text: string): void
  /** Sends a `response.create` to the provider once its cost is held. */
  respond(eventId: string, event: Readonly<Json>): Promise<void>
  /** Reports a refusal of money, and ends the session where no later one can succeed. */
  refused(error: GatewayError): void
  /** Closes both sides with 1008. */
  endForPolicy(reason: string): void
  upstreamFailed(what: string): void
}

/** Parts of a session that the provider's events change. */
interface ProviderEventsOptions {
  readonly context: SettingsContext
  readonly events: ClientEvents
  readonly responses: Responses
  readonly session: SessionActions
  /** Organization whose share of the event loop large events take. */
  readonly tenant: string
  /** Masks the provider's credential, where there is one. */
  readonly mask: Mask | undefined
}

/** Texts in pieces that are remembered: a response has a few at a time. */
const MAX_DELTAS = 64
/** Characters of a name that is kept as it is, and not as its hash: a provider's may be as long as a message. */
const MAX_NAME_CHARACTERS = 128

const responseIn = ({ response }: RealtimeEvent): Json => objectIn(response)

/** Reads the events of one provider; responses and transcripts are settled here. */
export class ProviderEvents {
  readonly #context: SettingsContext
  readonly #events: ClientEvents
  readonly #responses: Responses
  readonly #session: SessionActions
  readonly #mask: Mask | undefined
  readonly #deltas: PiecewiseMasks<string> | undefined
  readonly #tenant: string
  /** Audio was committed while a response ran: the next response answers it. */
  #isResponseDue = false

  constructor({ context, events, responses, session, tenant, mask }: ProviderEventsOptions) {
    this.#tenant = tenant
    this.#context = context
    this.#events = events
    this.#responses = responses
    this.#session = session
    this.#mask = mask
    this.#deltas = mask && new PiecewiseMasks(mask, MAX_DELTAS)
  }

  /** Rejects when the ledger fails. */
  async take(message: Message): Promise<void> {
    const reading = this.#read(message)
    const read = reading instanceof Promise ? await reading : reading
    // It may have ended while a large event was read: what that would begin is never settled.
    if (this.#session.isOver()) return
    if (!read) return this.#session.upstreamFailed('it sent a message that is no event')
    const { event, text } = read
    const passed = await this.#handle(event, this.#masked(event, text))
    if (passed !== undefined) this.#session.toClient(passed)
  }

  #read(message: Message): ReadEvent | undefined | Promise<ReadEvent | undefined> {
    return message === undefined ? undefined : readEvent(message, this.#tenant, this.#mask)
  }

  /** `text`, which is the message of `event`, with a masked delta. */
  #masked(event: RealtimeEvent, text: string): string {
    const { type, item_id: item, delta } = event
    if (!this.#deltas || typeof delta !== 'string' || type.endsWith('audio.delta')) return text
    const name = keyWithin(`${type} ${typeof item === 'string' ? item : ''}`, MAX_NAME_CHARACTERS)
    const clean = this.#deltas.next(name, delta)
    return clean === delta ? text : JSON.stringify({ ...event, delta: clean })
  }

  /** Returns the client's form of an event; undefined when it gets none. */
  async #handle(event: RealtimeEvent, text: string): Promise<string | undefined> {
    switch (event.type) {
      case 'rate_limits.updated':
        return undefined
      case 'session.updated':
        return this.#events.updated()?.isOwn ? undefined : this.#shown(event, text)
      case 'input_audio_buffer.committed':
        await this.#audioCommitted(event, text)
        return undefined
      case 'conversation.item.input_audio_transcription.completed':
        return this.#transcriptCompleted(event, text)
      case 'conversation.item.input_audio_transcription.failed':
        await this.#responses.transcriptFailed(event.item_id)
        return this.#shown(event, text)
      case 'response.created':
        return this.#created(event, text)
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

  #created(event: RealtimeEvent, text: string): string | undefined {
    const begun = this.#responses.created(responseIn(event))
    if (begun === 'begun') return this.#shown(event, text)
    if (begun === 'unrequested') this.#session.upstreamFailed('it began a response without a request')
    return undefined
  }

  async #delta(type: string, delta: string, text: string): Promise<string | undefined> {
    if (this.#responses.isCancelled) return undefined
    return (await this.#responses.delta(type, delta)) ? text : undefined
  }

  async #done(event: RealtimeEvent, text: string): Promise<string | undefined> {
    const ended = await this.#responses.done(responseIn(event))
    if (ended === 'duplicate') return undefined
    if (ended === 'unrequested') {
      this.#session.upstreamFailed('it ended a response without a request')
      return undefined
    }
    if (ended === 'unreadable') {
      this.#session.upstreamFailed('the usage of a response cannot be read')
      return undefined
    }
    // The client has it before anything that follows.
    this.#session.toClient(this.#shown(event, text))
    // The client may have begun one while this one was charged.
    const isFree = !this.#responses.isRunning && !this.#session.isEnding()
    if (this.#isResponseDue && isFree) await this.#createResponse()
    return undefined
  }

  async #audioCommitted(event: RealtimeEvent, text: string): Promise<void> {
    const { isByClient, seconds } = this.#events.committed()
    const { transcribing } = this.#events
    if (transcribing) {
      try {
        await this.#responses.expectTranscript(event.item_id, seconds, transcribing.mapping, transcribing.prompt)
      } catch (thrown) {
        this.#session.refused(asError(thrown))
        // The provider transcribes already; no event stops that.
        this.#session.endForPolicy('no money for transcripts')
        return
      }
    }
    this.#session.toClient(text)
    if (isByClient || !this.#events.settings.createsResponses || this.#context.transcribes || this.#session.isEnding())
      return
    if (this.#responses.isRunning) this.#isResponseDue = true
    else await this.#createResponse()
  }

  /** Answers committed audio, as a provider with `create_response` does. */
  async #createResponse(): Promise<void> {
    this.#isResponseDue = false
    const eventId = newEventId()
    const event = { type: 'response.create', event_id: eventId }
    await this.#session.respond(eventId, event)
  }

  async #transcriptCompleted(event: RealtimeEvent, text: string): Promise<string | undefined> {
    try {
      await this.#responses.transcriptCompleted(event, this.#events.settings.transcriber)
      return text
    } catch (thrown) {
      this.#session.refused(asError(thrown))
      this.#session.endForPolicy('no money for transcripts')
      return undefined
    }
  }

  async #providerError(event: RealtimeEvent): Promise<string | undefined> {
    const error: Json = objectIn(event.error)
    const { event_id: id, code } = error
    const of = typeof id === 'string' && id !== '' ? id : undefined
    const update = this.#events.updateRefused(of)
    if (of !== undefined || code === 'conversation_already_has_active_response') this.#responses.refused(of)
    if (of !== undefined || code === 'input_audio_buffer_commit_empty') this.#events.commitRefused(of)
    const clean = withShownError({ ...event, error }, this.#context.target)
    const said = objectIn(clean.error)
    const shown = JSON.stringify({ ...clean, error: { ...said, event_id: this.#events.clientIdOf(of) } })
    if (!update?.isOwn) return shown
    // Without the update the provider would create responses that no money is held for.
    this.#session.toClient(JSON.stringify({ ...clean, error: { ...said, event_id: null } }))
    this.#session.upstreamFailed('it refused the settings of the session')
    return undefined
  }

  #shown(event: RealtimeEvent, text: string): string {
    return shownEvent(event, text, this.#context, this.#events.settings)
  }
}
