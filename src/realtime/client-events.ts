/** Events of clients: most are passed on, some are changed, and some cost money. */
import type { Mapping } from '../core/translator.ts'
import { MOST_OUTPUT } from '../core/usage.ts'
import { isObject, type Json, listIn } from '../json/json.ts'
import { CALL_BOUNDS, MAX_LEVELS } from '../json/shape.ts'
import { bytesPerSecond, type Conversation, secondsOf } from './conversation.ts'
import { EventError, idOf, newEventId, type RealtimeEvent } from './events.ts'
import { InputBuffer } from './input-buffer.ts'
import { checkImages } from './item-images.ts'
import { HELD_OUTPUT } from './response-meter.ts'
import type { PlannedResponse } from './responses.ts'
import { audioOf, changed, checkSettings, dearest, type Settings, type SettingsContext, tokensOf } from './settings.ts'

/** A change of the settings that the provider has not answered. `before`: the settings without it and later ones. */
interface PendingUpdate {
  readonly eventId: string
  readonly isOwn: boolean
  readonly change: Partial<Settings>
  before: Settings
}

/** What a client's event comes to. `event`: as its provider gets it; `own`: as it came. */
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
const MAX_PENDING = 256

/** Reads the events of one client; keeps its settings and the changes of them that are pending. */
export class ClientEvents {
  readonly #context: SettingsContext
  readonly #conversation: Conversation
  /** With all changes that were sent, answered or not. */
  settings: Settings
  readonly updates: PendingUpdate[] = []
  /** Those that the provider may have kept when it refused a change without saying which; the dearest of them. */
  #kept: Settings | undefined
  /** Ids of clients by ours, under which their events are sent: two of theirs may be the same. */
  readonly #clientIds = new Map<string, string | null>()
  readonly #input = new InputBuffer()

  constructor(context: SettingsContext, conversation: Conversation, settings: Settings) {
    this.#context = context
    this.#conversation = conversation
    this.settings = settings
  }

  /** `event`: what a message was read as. */
  take(event: RealtimeEvent | undefined): Outcome {
    if (!event) {
      const message = `An event is a JSON object with a "type", of at most ${MAX_LEVELS} levels, ${CALL_BOUNDS.values} values and ${CALL_BOUNDS.names} names.`
      return refused('invalid_json', message)
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
    // The dearest counts.
    const possible = this.#possible()
    const own: Readonly<Json> = isObject(response) ? response : {}
    const { maxOutput, contextLength = MOST_OUTPUT } = this.#context.target.mapping
    const limits =
      own.max_output_tokens === undefined
        ? possible.map(settings => settings.maxOutput)
        : [tokensOf(own.max_output_tokens)]
    const limit = Math.max(...limits.map(tokens => tokens ?? Number.POSITIVE_INFINITY))
    const most = Math.min(limit, maxOutput ?? contextLength)
    const output = limit === Number.POSITIVE_INFINITY ? Math.min(HELD_OUTPUT, most) : most
    const modalities = own.output_modalities
    const audioOutput = Array.isArray(modalities)
      ? modalities.includes('audio')
      : possible.some(({ hasAudio }) => hasAudio)
    const { format } = audioOf(own).output
    const outputRate = Math.min(...possible.map(settings => settings.outputRate))
    return {
      expected: this.#conversation.expected(output, audioOutput, own, this.#inputRate),
      most,
      outputRate: format === undefined ? outputRate : bytesPerSecond(format),
      reported: this.#conversation.begin(
        own,
        possible.some(({ truncates }) => truncates),
      ),
    }
  }

  /** The settings that the provider may have: it has yet to answer some changes, and may refuse them. */
  #possible(): Settings[] {
    return [...this.updates.map(({ before }) => before), this.settings, ...(this.#kept ? [this.#kept] : [])]
  }

  /** What transcribes the audio that the provider has committed; undefined where nothing can. `prompt`: tokens read with it. */
  get transcribing(): { readonly mapping: Mapping; readonly prompt: number } | undefined {
    const possible = this.#possible().filter(({ transcription }) => transcription !== undefined)
    const mapping = possible[0]?.transcription
    return mapping && { mapping, prompt: Math.max(...possible.map(({ transcriptionPrompt }) => transcriptionPrompt)) }
  }

  /** Audio was committed of which a transcript will come. */
  get awaitsTranscript(): boolean {
    return this.#input.commits > 0 && this.transcribing !== undefined
  }

  /** Bytes of a second of the audio that the client sends, at least. */
  get #inputRate(): number {
    return Math.min(...this.#possible().map(({ inputRate }) => inputRate))
  }

  /** The provider has committed audio; a commit by the client asks for no response. */
  committed(): { readonly isByClient: boolean; readonly seconds: number } {
    const committed = this.#input.committed()
    if (committed.more > 0) this.#conversation.addAudio(committed.more)
    return committed
  }

  /** The provider has cleared its buffer. */
  cleared(): void {
    this.#input.cleared()
  }

  /**
   * Takes a commit or a clearing that the provider refused as answered: its audio is in the buffer again. An error without an
   * id is of the oldest commit where its code says so; else it may be of a clearing, so that more is held for.
   */
  inputRefused(eventId: string | undefined, code: unknown): void {
    const refused = eventId ?? this.#input.oldest(code === 'input_audio_buffer_commit_empty')
    this.#conversation.removeAudio(this.#input.refused(refused, eventId !== undefined))
  }

  /**
   * Takes back the change that the provider refused, and no later one. Undefined where the event changed nothing. An error
   * without an id may be of any change: what stood before it is possible from then on.
   */
  refused(eventId: string | undefined): PendingUpdate | undefined {
    if (eventId === undefined) {
      for (const { before } of this.updates) this.#kept = this.#kept ? dearest(before, this.#kept) : before
      return undefined
    }
    const at = this.updates.findIndex(update => update.eventId === eventId)
    if (at < 0) return undefined
    const [update] = this.updates.splice(at, 1)
    let settings = update!.before
    for (const later of this.updates.slice(at)) {
      later.before = settings
      settings = { ...settings, ...later.change }
    }
    this.settings = settings
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
        this.#conversation.item(event.item, this.#inputRate)
        break
      case 'input_audio_buffer.append':
        this.#input.append(secondsOf(event.audio, this.#inputRate))
        break
      case 'input_audio_buffer.clear':
        return this.#clear(event)
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
    if (this.updates.length >= MAX_PENDING) {
      throw new EventError('rate_limit_exceeded', 'Too many changes of the session wait for their answers.')
    }
    const { session, change } = changed(wanted, this.settings, this.#context)
    const eventId = this.#idFor(event)
    this.updates.push({ eventId, isOwn: false, change, before: this.settings })
    this.settings = { ...this.settings, ...change }
    this.#conversation.settings(wanted)
    return { kind: 'pass', event: { ...event, event_id: eventId, session } }
  }

  #commit(event: RealtimeEvent): Outcome {
    if (this.#input.commits >= MAX_PENDING) {
      throw new EventError('rate_limit_exceeded', 'Too many commits wait for their answers.')
    }
    const eventId = this.#idFor(event)
    this.#conversation.addAudio(this.#input.commit(eventId))
    return { kind: 'pass', event: { ...event, event_id: eventId } }
  }

  #clear(event: RealtimeEvent): Outcome {
    const eventId = this.#idFor(event)
    this.#input.clear(eventId)
    return { kind: 'pass', event: { ...event, event_id: eventId } }
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
    if (this.#clientIds.size > MAX_PENDING && oldest !== undefined) this.#clientIds.delete(oldest)
    return id
  }
}

/** A `response.create` with a lower limit of its output. */
export function limited(event: Readonly<Json>, tokens: number): Readonly<Json> {
  const own = isObject(event.response) ? event.response : {}
  return { ...event, response: { ...own, max_output_tokens: tokens } }
}

const refused = (code: string, message: string): Outcome => ({ kind: 'error', code, message, param: null, of: null })
