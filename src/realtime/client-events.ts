/** Events of clients: most are passed on, some are changed, and some cost money. */
import type { Mapping } from '../core/translator.ts'
import { MAX_OUTPUT_TOKENS } from '../core/usage.ts'
import { isObject, type Json, listIn, objectIn } from '../json/json.ts'
import { CALL_BOUNDS, MAX_LEVELS } from '../json/shape.ts'
import { bytesPerSecond, type Conversation, secondsOf } from './conversation.ts'
import { checkImages, EventError, idOf, newEventId, type RealtimeEvent } from './events.ts'
import { InputBuffer } from './input-buffer.ts'
import { HELD_OUTPUT_TOKENS } from './response-meter.ts'
import type { PlannedResponse } from './responses.ts'
import {
  audioOf,
  changed,
  checkSettings,
  hasAudioOf,
  type Settings,
  type SettingsContext,
  tokensOf,
} from './settings.ts'

/** A change of the settings that the provider has not answered. `isOwn`: the gateway made it. */
interface PendingUpdate {
  readonly eventId: string
  readonly isOwn: boolean
  readonly change: Partial<Settings>
}

/** Result of a client's event. `event`: the form for the provider; `own`: the form that arrived. */
type Outcome =
  | { readonly kind: 'pass'; readonly event: RealtimeEvent }
  | {
      readonly kind: 'response'
      readonly event: RealtimeEvent
      readonly eventId: string
      readonly own: RealtimeEvent
    }
  | {
      readonly kind: 'error'
      readonly code: string
      readonly message: string
      readonly param: string | null
      readonly of: string | null
    }

/** Events of one kind that may wait for their answers. */
const MAX_PENDING_EVENTS = 256

/** Reads the events of one client; keeps its settings and the changes of them that are pending. */
export class ClientEvents {
  readonly #context: SettingsContext
  readonly #conversation: Conversation
  /** Settings that the provider has answered. */
  #answered: Settings
  /** Settings with all changes that were sent. */
  settings: Settings
  readonly #updates: PendingUpdate[]
  /** Ids of clients by ours, under which their events are sent: two of theirs may be the same. */
  readonly #clientIds = new Map<string, string | null>()
  readonly #input = new InputBuffer()

  /** `first`: the id of the gateway's own first update, to `settings`. */
  constructor(context: SettingsContext, conversation: Conversation, settings: Settings, first: string) {
    this.#context = context
    this.#conversation = conversation
    this.#answered = settings
    this.settings = settings
    this.#updates = [{ eventId: first, isOwn: true, change: {} }]
  }

  /** `event`: what a message was read as. */
  take(event: RealtimeEvent | undefined): Outcome {
    if (!event) {
      const message = `An event is a JSON object with a "type", of at most ${MAX_LEVELS} levels, ${CALL_BOUNDS.values} values and ${CALL_BOUNDS.names} names.`
      return { kind: 'error', code: 'invalid_json', message, param: null, of: null }
    }
    try {
      return this.#outcomeOf(event)
    } catch (thrown) {
      if (!(thrown instanceof EventError)) throw thrown
      return { kind: 'error', code: thrown.code, message: thrown.message, param: thrown.param, of: idOf(event) }
    }
  }

  /** The response that a `response.create` asks for. */
  planned({ response }: Readonly<Json>): PlannedResponse {
    const { settings } = this
    const own: Readonly<Json> = objectIn(response)
    const { maxOutput, contextLength = MAX_OUTPUT_TOKENS } = this.#context.target.mapping
    const asked = own.max_output_tokens === undefined ? settings.maxOutput : tokensOf(own.max_output_tokens)
    const most = Math.min(asked ?? Number.POSITIVE_INFINITY, maxOutput ?? contextLength)
    const output = asked === undefined ? Math.min(HELD_OUTPUT_TOKENS, most) : most
    const { format } = audioOf(own).output
    return {
      expected: this.#conversation.expected(output, hasAudioOf(own) ?? settings.hasAudio, own, settings.inputRate),
      most,
      outputRate: format === undefined ? settings.outputRate : bytesPerSecond(format),
      reported: this.#conversation.begin(own),
    }
  }

  /** Mapping that transcribes the committed audio; undefined when none can. `prompt`: tokens read with it. */
  get transcribing(): { readonly mapping: Mapping; readonly prompt: number } | undefined {
    const { transcription, transcriber, transcriptionPrompt: prompt } = this.settings
    const mapping = transcription ?? (this.#updates.length > 0 ? transcriber : undefined)
    return mapping && { mapping, prompt }
  }

  /** Audio was committed of which a transcript will come. */
  get awaitsTranscript(): boolean {
    return this.#input.commits > 0 && this.transcribing !== undefined
  }

  /** The provider has committed audio; a commit by the client asks for no response. */
  committed(): { readonly isByClient: boolean; readonly seconds: number } {
    const committed = this.#input.committed()
    if (!committed.isByClient) this.#conversation.addAudio(committed.seconds)
    return committed
  }

  /** The provider refused a commit: of this event, or the oldest where its error names none. */
  commitRefused(eventId: string | undefined): void {
    this.#conversation.removeAudio(this.#input.refused(eventId))
  }

  /** The provider has taken the oldest change of the settings; returns it. */
  updated(): PendingUpdate | undefined {
    const update = this.#updates.shift()
    if (update) this.#answered = { ...this.#answered, ...update.change }
    return update
  }

  /** Takes back the change that the provider refused, and no later one. Undefined where the event changed nothing. */
  updateRefused(eventId: string | undefined): PendingUpdate | undefined {
    const at = this.#updates.findIndex(update => update.eventId === eventId)
    if (at < 0) return undefined
    const [update] = this.#updates.splice(at, 1)
    this.settings = Object.assign({}, this.#answered, ...this.#updates.map(({ change }) => change)) as Settings
    return update
  }

  #outcomeOf(event: RealtimeEvent): Outcome {
    const { form, target } = this.#context
    switch (event.type) {
      case 'session.update':
        return this.#update(event)
      case 'response.create':
        return this.#response(event)
      case 'conversation.item.create':
        checkImages(event.item, 'item')
        this.#conversation.item(event.item, this.settings.inputRate)
        break
      case 'input_audio_buffer.append':
        this.#input.append(secondsOf(event.audio, this.settings.inputRate))
        break
      case 'input_audio_buffer.clear':
        this.#input.clear()
        return { kind: 'pass', event: { type: event.type, event_id: this.#idFor(event) } }
      case 'input_audio_buffer.commit':
        return this.#commit(event)
      default:
        if (target.credential?.source !== 'byok' && !form.events.has(event.type)) {
          const message = `Events of the type "${event.type.slice(0, 64)}" are not available with the gateway's credentials.`
          throw new EventError('unsupported_event', message, 'type')
        }
    }
    // It is written anew: a name that stands twice could be read in two ways.
    return { kind: 'pass', event }
  }

  #update(event: RealtimeEvent): Outcome {
    const wanted = event.session
    if (!isObject(wanted)) throw new EventError('invalid_request', 'session: expected an object', 'session')
    if (this.#updates.length >= MAX_PENDING_EVENTS) {
      throw new EventError('rate_limit_exceeded', 'Too many changes of the session wait for their answers.')
    }
    const { session, change } = changed(wanted, this.settings, this.#context)
    const eventId = this.#idFor(event)
    this.#updates.push({ eventId, isOwn: false, change })
    this.settings = { ...this.settings, ...change }
    this.#conversation.settings(wanted)
    return { kind: 'pass', event: { ...event, event_id: eventId, session } }
  }

  #commit(event: RealtimeEvent): Outcome {
    if (this.#input.commits >= MAX_PENDING_EVENTS) {
      throw new EventError('rate_limit_exceeded', 'Too many commits wait for their answers.')
    }
    const eventId = this.#idFor(event)
    this.#conversation.addAudio(this.#input.commit(eventId))
    // Nothing else is passed on that a provider could refuse.
    return { kind: 'pass', event: { type: event.type, event_id: eventId } }
  }

  #response(event: RealtimeEvent): Outcome {
    if (this.#context.transcribes) {
      throw new EventError('response_not_supported', 'A session that transcribes gives no responses.')
    }
    const { response } = event
    let own = response
    if (isObject(response)) {
      checkSettings(response, this.#context, 'response')
      for (const [at, item] of listIn(response.input).entries()) checkImages(item, `response.input[${at}]`)
      if (response.model !== undefined) own = { ...response, model: this.#context.target.mapping.externalId }
    } else if (response != null) throw new EventError('invalid_request', 'response: expected an object', 'response')
    const eventId = this.#idFor(event)
    const sent = { ...event, event_id: eventId, ...(own != null && { response: own }) }
    return { kind: 'response', event: sent, eventId, own: event }
  }

  /** The client's own id of an event, which an error of the provider names by ours. */
  clientIdOf(eventId: unknown): string | null {
    if (typeof eventId !== 'string') return null
    const name = this.#clientIds.get(eventId)
    return name === undefined ? idOf({ event_id: eventId }) : name
  }

  #idFor(event: RealtimeEvent): string {
    const id = newEventId()
    this.#clientIds.set(id, idOf(event))
    const [oldest] = this.#clientIds.keys()
    if (this.#clientIds.size > MAX_PENDING_EVENTS && oldest !== undefined) this.#clientIds.delete(oldest)
    return id
  }
}

/** A `response.create` with a lower limit of its output. */
export function limited(event: Readonly<Json>, tokens: number): Readonly<Json> {
  const own = objectIn(event.response)
  return { ...event, response: { ...own, max_output_tokens: tokens } }
}
