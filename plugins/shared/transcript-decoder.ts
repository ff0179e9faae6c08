/** Decoders of transcripts whose stream ends with the whole of it, in the words of a wire. */
import {
  type Decoder,
  type Event,
  errors,
  type Frame,
  isObject,
  type Json,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  textIn,
  type Usage,
} from '../../src/plugin.ts'
import { errorIn, parsed, WholeDecoder } from './answer.ts'
import { transcriptEvents } from './transcriptions.ts'

/** An answer, or the event that ends a stream, which holds all of the text. */
export type Spoken = Json & { readonly text: string }

/** How a wire names its events, and their fields. */
export interface TranscriptForm {
  readonly delta: string
  /** The field of a delta that holds its text. */
  readonly deltaText: string
  readonly segment: string
  readonly done: string
  /** Event that holds the language, before the text, for wires that have one. */
  readonly language?: string
  transcriptOf(answer: Spoken, request: Readonly<TranscriptionRequest>): Transcript
  /** Tokens that an answer reports; none for wires that count time alone. */
  tokensIn?(usage: unknown): Usage
}

/** Whole answers are read at their end; streams emit deltas, then the whole transcript as the `result`. */
export const transcriptDecoder = (
  mode: 'stream' | 'unary',
  target: Target,
  request: Readonly<TranscriptionRequest>,
  form: TranscriptForm,
): Decoder => (mode === 'stream' ? new EventDecoder(target, request, form) : whole(target, request, form))

const whole = (target: Target, request: Readonly<TranscriptionRequest>, form: TranscriptForm): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame)
    if (!isSpoken(answer)) throw errorIn(answer, 'text', target)
    return transcriptEvents(form.transcriptOf(answer, request), request, target, form.tokensIn?.(answer.usage))
  })

const isSpoken = (answer: unknown): answer is Spoken => isObject(answer) && typeof answer.text === 'string'

/** Without the event that ends it an answer was cut. */
class EventDecoder implements Decoder {
  done = false
  readonly #target: Target
  readonly #request: Readonly<TranscriptionRequest>
  readonly #form: TranscriptForm
  readonly #segments: Json[] = []
  #language: unknown

  constructor(target: Target, request: Readonly<TranscriptionRequest>, form: TranscriptForm) {
    this.#target = target
    this.#request = request
    this.#form = form
  }

  frame(frame: Frame): Event[] {
    const event = parsed(frame)
    if (!isObject(event)) return [{ type: 'error', error: errors.invalidAnswer('an event is not an object') }]
    const { delta, deltaText, segment, done, language } = this.#form
    switch (event.type ?? '') {
      case delta:
        return [{ type: 'text', choice: 0, text: textIn(event[deltaText]) ?? '' }]
      case segment:
        this.#segments.push(event)
        return []
      case language:
        this.#language = event.audio_language ?? event.language
        return []
      case done:
        return this.#end(event)
    }
    if (event.type !== 'error' && event.object !== 'error' && event.error === undefined) return []
    return [{ type: 'error', error: errorIn(event, 'text', this.#target) }]
  }

  end(): Event[] {
    return this.done ? [] : [{ type: 'error', error: errors.invalidAnswer('it was cut short') }]
  }

  #end(event: Json): Event[] {
    this.done = true
    if (!isSpoken(event)) throw errorIn(event, 'text', this.#target)
    const segments = this.#segments.length > 0 ? { segments: this.#segments } : {}
    const transcript = this.#form.transcriptOf({ language: this.#language, ...event, ...segments }, this.#request)
    return transcriptEvents(transcript, this.#request, this.#target, this.#form.tokensIn?.(event.usage))
  }
}
