/** OpenAI's speech wire, `openai.speech` (docs/contributing/wire-sources.md#openai). */
import {
  CHARACTERS,
  countIn,
  type Decoder,
  type Event,
  errors,
  isObject,
  type Json,
  objectIn,
  type SpeechRequest,
  speechFormats,
  type Target,
  type Translator,
  type WireRequest,
} from '../../src/plugin.ts'
import { errorIn, parsed, plainError } from '../shared/answer.ts'
import { allFormats, audioBytes, audioForm, noAudio, voiceOf } from '../shared/speech.ts'

const USUAL_VOICE = 'alloy'
const USUAL_FORMAT = 'mp3'
/** Models that take no instructions. */
const PLAIN = /^tts-1/

/** Only events report tokens; a model charged by characters needs none. */
const reportsUsage = ({ mapping: { model, supports } }: Target): boolean =>
  supports.has('streaming') && model.tokenizer !== CHARACTERS

function encode(request: Readonly<SpeechRequest>, target: Target): WireRequest {
  const { input, response_format, speed, instructions } = request
  const { mapping } = target
  const voice = voiceOf(request, mapping, USUAL_VOICE)
  return {
    path: '/audio/speech',
    body: {
      model: mapping.externalId,
      input,
      voice: request.own_voice && voice === request.voice ? { id: voice } : voice,
      ...(response_format !== undefined && { response_format }),
      ...(speed !== undefined && { speed }),
      ...(instructions !== undefined && !PLAIN.test(mapping.externalId) && { instructions }),
      ...(reportsUsage(target) && { stream_format: 'sse' }),
    },
  }
}

/** Audio in events: `speech.audio.delta`, then `speech.audio.done` with its usage. */
class EventDecoder implements Decoder {
  done = false
  #began = false
  readonly #target: Target
  readonly #contentType: string

  constructor(target: Target, { response_format = USUAL_FORMAT }: Readonly<SpeechRequest>) {
    this.#target = target
    this.#contentType = speechFormats[response_format]
  }

  frame(frame: Parameters<Decoder['frame']>[0]): Event[] {
    const event = parsed(frame)
    if (!isObject(event)) return [{ type: 'error', error: errors.invalidAnswer('an event is not an object') }]
    if (event.type === 'speech.audio.delta' && typeof event.audio === 'string') return this.#audio(event.audio)
    if (event.type === 'speech.audio.done') return this.#end(event)
    if (event.type !== 'error' && event.error === undefined) return []
    return [{ type: 'error', error: errorIn(event, 'audio', this.#target) }]
  }

  end(): Event[] {
    if (this.done && this.#began) return []
    return [{ type: 'error', error: errors.invalidAnswer(this.done ? 'it holds no audio' : 'it was cut short') }]
  }

  #audio(audio: string): Event[] {
    const bytes = audioBytes(audio)
    if (bytes.length === 0) return []
    if (this.#began) return [{ type: 'bytes', bytes }]
    this.#began = true
    return [{ type: 'bytes', bytes, contentType: this.#contentType }]
  }

  #end({ usage }: Json): Event[] {
    this.done = true
    const { input_tokens, output_tokens } = objectIn(usage)
    const [prompt, completion] = [countIn(input_tokens), countIn(output_tokens)]
    if (prompt === undefined || completion === undefined) return []
    return [{ type: 'usage', usage: { prompt, completion, output_audio: completion } }]
  }
}

/** OpenAI's "Create speech" API, `POST /audio/speech`. */
export const speech: Translator<'speech'> = {
  op: 'speech',
  wire: 'openai.speech',
  outputFormats: allFormats,
  maxInputCharacters: 4096,
  encode,
  bytes: audioForm,
  decoder: (mode, target, input) => (mode === 'stream' ? new EventDecoder(target, input!) : noAudio(target)),
  error: plainError,
}
