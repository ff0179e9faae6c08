/** OpenAI's transcription wires, `openai.transcriptions` and `openai.translations` (wire/openai.md section 8). */
import {
  type Decoder,
  type Event,
  errors,
  isObject,
  type Json,
  needsSpeakers,
  needsTimes,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type Usage,
  type WireRequest,
} from '../../src/plugin.ts'
import { errorIn, plainError } from '../shared/error.ts'
import { fileOf, segmentsIn, told, wordsIn } from '../shared/transcriptions.ts'
import { parsed, WholeDecoder } from '../shared/whole.ts'

/** Times where the client's format needs them, or the price is for hours, which only this form tells. */
function formatOf(request: Readonly<TranscriptionRequest>, { mapping, price }: Target): string {
  if (needsSpeakers(request)) return 'diarized_json'
  const isTimed = mapping.supports.has('timestamps')
  return isTimed && (needsTimes(request) || price?.rates.input_audio_hour !== undefined) ? 'verbose_json' : 'json'
}

function encode(path: string, request: Readonly<TranscriptionRequest>, target: Target, stream: boolean): WireRequest {
  const { language, prompt, temperature, timestamp_granularities, include, chunking_strategy } = request
  const format = stream ? (needsSpeakers(request) ? 'diarized_json' : 'json') : formatOf(request, target)
  const isTranslated = path.endsWith('translations')
  return {
    path,
    body: {
      model: target.mapping.externalId,
      ...(language !== undefined && !isTranslated && { language }),
      ...(prompt !== undefined && { prompt }),
      ...(temperature !== undefined && { temperature }),
      response_format: format,
      ...(format === 'verbose_json' &&
        timestamp_granularities.length > 0 && { 'timestamp_granularities[]': timestamp_granularities }),
      ...(include.length > 0 && { 'include[]': include }),
      ...(chunking_strategy !== undefined && { chunking_strategy }),
      ...(request.known_speaker_names.length > 0 && { 'known_speaker_names[]': request.known_speaker_names }),
      ...(request.known_speaker_references.length > 0 && {
        'known_speaker_references[]': request.known_speaker_references,
      }),
      ...(stream && { stream: true }),
    },
    files: [fileOf(request)],
  }
}

function transcriptOf(answer: Json): Transcript {
  const { text, language, duration, segments, words, logprobs, usage } = answer
  const { seconds } = isObject(usage) ? usage : {}
  const lasted = Number(duration ?? seconds)
  return {
    text: String(text),
    language: typeof language === 'string' ? language : undefined,
    duration: Number.isFinite(lasted) && lasted >= 0 ? lasted : undefined,
    segments: Array.isArray(segments) ? segmentsIn(segments) : undefined,
    words: Array.isArray(words) ? wordsIn(words, 'word') : undefined,
    logprobs,
  }
}

function tokensIn(usage: unknown): Usage {
  const { input_tokens: prompt, output_tokens: completion, input_token_details: details } = isObject(usage) ? usage : {}
  if (typeof prompt !== 'number' || typeof completion !== 'number') return {}
  const { audio_tokens: audio } = isObject(details) ? details : {}
  return typeof audio === 'number' ? { prompt, completion, input_audio: audio } : { prompt, completion }
}

const whole = (target: Target, request: Readonly<TranscriptionRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame)
    if (!isObject(answer) || typeof answer.text !== 'string') throw errorIn(answer, 'text', target)
    return told(transcriptOf(answer), request, target, tokensIn(answer.usage))
  })

/** `transcript.text.delta`, `.segment`, and `.done`, without which the answer was cut. */
class EventDecoder implements Decoder {
  done = false
  readonly #target: Target
  readonly #request: Readonly<TranscriptionRequest>
  readonly #segments: unknown[] = []

  constructor(target: Target, request: Readonly<TranscriptionRequest>) {
    this.#target = target
    this.#request = request
  }

  frame(frame: Parameters<Decoder['frame']>[0]): Event[] {
    const event = parsed(frame)
    if (!isObject(event)) return [{ type: 'error', error: errors.invalidAnswer('an event is no object') }]
    if (event.type === 'transcript.text.delta') return [{ type: 'text', choice: 0, text: String(event.delta ?? '') }]
    if (event.type === 'transcript.text.segment') this.#segments.push(event)
    if (event.type === 'transcript.text.done') return this.#end(event)
    if (event.type !== 'error' && event.error === undefined) return []
    return [{ type: 'error', error: errorIn(event, 'text', this.#target) }]
  }

  end(): Event[] {
    return this.done ? [] : [{ type: 'error', error: errors.invalidAnswer('it was cut short') }]
  }

  #end(event: Json): Event[] {
    this.done = true
    const segments = this.#segments.length > 0 ? { segments: this.#segments } : {}
    const transcript = transcriptOf({ ...event, ...segments })
    return told(transcript, this.#request, this.#target, tokensIn(event.usage))
  }
}

const wire = <O extends 'transcriptions' | 'translations'>(op: O): Translator<O> => ({
  op,
  wire: `openai.${op}`,
  encode: (request, target, stream) => encode(`/audio/${op}`, request, target, stream && op === 'transcriptions'),
  decoder: (mode, target, input) => (mode === 'stream' ? new EventDecoder(target, input!) : whole(target, input!)),
  error: plainError,
})

export const transcriptions = wire('transcriptions')
export const translations = wire('translations')
