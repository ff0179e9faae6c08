/** Mistral's transcription wire, `mistral.transcriptions` (wire/mistral-cohere-jina-voyage.md section A5). */
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
  type WireRequest,
} from '../../src/plugin.ts'
import { errorIn } from '../shared/error.ts'
import { fileOf, segmentsIn, told } from '../shared/transcriptions.ts'
import { parsed, WholeDecoder } from '../shared/whole.ts'
import { error } from './fault.ts'

function encode(request: Readonly<TranscriptionRequest>, { mapping }: Target, stream: boolean): WireRequest {
  const { language, url, temperature, keyterm, timestamp_granularities: times } = request
  const granularities = needsTimes(request) && times.length === 0 ? ['segment'] : times
  return {
    path: '/audio/transcriptions',
    body: {
      model: mapping.externalId,
      ...(url !== undefined && { file_url: url }),
      ...(language !== undefined && { language }),
      ...(temperature !== undefined && { temperature }),
      ...(needsSpeakers(request) && { diarize: true }),
      ...(keyterm.length > 0 && { context_bias: keyterm }),
      ...(granularities.length > 0 && { timestamp_granularities: granularities }),
      ...(stream && { stream: true }),
    },
    files: url === undefined ? [fileOf(request)] : [],
  }
}

function transcriptOf({ text, language, segments, usage }: Json): Transcript {
  const { prompt_audio_seconds: seconds } = isObject(usage) ? usage : {}
  return {
    text: String(text ?? ''),
    language: typeof language === 'string' ? language : undefined,
    duration: typeof seconds === 'number' ? seconds : undefined,
    segments: Array.isArray(segments) && segments.length > 0 ? segmentsIn(segments) : undefined,
  }
}

/** `transcription.language`, `.text.delta`, `.segment`, `.done`, without which the answer was cut. */
class EventDecoder implements Decoder {
  done = false
  readonly #target: Target
  readonly #request: Readonly<TranscriptionRequest>
  readonly #segments: Json[] = []
  #language: unknown

  constructor(target: Target, request: Readonly<TranscriptionRequest>) {
    this.#target = target
    this.#request = request
  }

  frame(frame: Parameters<Decoder['frame']>[0]): Event[] {
    const event = parsed(frame)
    if (!isObject(event)) return [{ type: 'error', error: errors.invalidAnswer('an event is no object') }]
    switch (event.type) {
      case 'transcription.language':
        this.#language = event.audio_language ?? event.language
        return []
      case 'transcription.text.delta':
        return [{ type: 'text', choice: 0, text: String(event.text ?? '') }]
      case 'transcription.segment':
        this.#segments.push(event)
        return []
      case 'transcription.done': {
        this.done = true
        const segments = this.#segments.length > 0 ? this.#segments : event.segments
        return told(transcriptOf({ language: this.#language, ...event, segments }), this.#request, this.#target)
      }
      default:
        if (event.error === undefined && event.object !== 'error') return []
        return [{ type: 'error', error: errorIn(event, 'text', this.#target) }]
    }
  }

  end(): Event[] {
    return this.done ? [] : [{ type: 'error', error: errors.invalidAnswer('it was cut short') }]
  }
}

const whole = (target: Target, request: Readonly<TranscriptionRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame)
    if (!isObject(answer) || typeof answer.text !== 'string') throw errorIn(answer, 'text', target)
    return told(transcriptOf(answer), request, target)
  })

export const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'mistral.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode,
  decoder: (mode, target, input) => (mode === 'stream' ? new EventDecoder(target, input!) : whole(target, input!)),
  error,
}
