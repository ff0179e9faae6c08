/** Client wires of `POST /v1/audio/transcriptions` and `/v1/audio/translations` (docs/contract.md#transcriptions). */

import type { Codec, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { Form, type Upload } from '../lib/body.ts'
import { errorBody, errors } from '../lib/error.ts'
import { AUDIO_HEAD_BYTES, fileTypeOf } from '../media/audio-type.ts'
import {
  likelySeconds,
  type Transcript,
  type TranscriptionBody,
  type TranscriptionRequest,
  transcriptionBody,
  translationBody,
} from '../operations/transcriptions/request.ts'
import { usdOf } from './accounting.ts'
import { typedEvent, typedHeartbeat } from './event-stream.ts'
import { formBody } from './form.ts'
import { diarized, written } from './transcript/formats.ts'
import { assertAudioData, assertAudioUrl } from './url.ts'
import { type Validator, validator } from './validate.ts'
import { CostedEncoder, TypedEncoder } from './whole.ts'

const validate = validator(transcriptionBody)
const validateTranslation = validator(translationBody)
const STREAMED = ['json', 'text', 'diarized_json']
const HOUR_SECONDS = 3600

/** Fields of a translation; others are ignored. */
function translated(body: unknown): TranscriptionBody {
  const { model, url, prompt, response_format, temperature } = validateTranslation(body)
  return { model, url, prompt, response_format, temperature }
}

const codec = (
  wire: string,
  task: 'transcribe' | 'translate',
  checked: (body: unknown) => TranscriptionBody,
  { json: requestSchema, partial, prepare }: Pick<Validator<unknown>, 'json' | 'partial' | 'prepare'>,
) => ({
  wire,
  preset: partial,
  decode(body: unknown, ex?: Exchange): TranscriptionRequest {
    if (!(body instanceof Form)) return canonical(checked(body), undefined)
    const { fields, files } = formBody(body, transcriptionBody, ex?.input)
    const [file, ...others] = files.get('file') ?? []
    if (others.length > 0) throw errors.invalidFormData('"file" takes one file, but occurs twice')
    return canonical(checked(fields), file)
  },
  encoder: (ex: Exchange): Encoder =>
    (ex.request as TranscriptionRequest).stream ? new EventEncoder(ex) : wholeTranscript(ex, task),
  heartbeat: typedHeartbeat,
  error: errorBody,
  requestSchema,
  prepare,
})

/** A form with a file, or JSON with an address. */
export const transcriptions = codec(
  'openai.transcriptions',
  'transcribe',
  validate,
  validate,
) satisfies Codec<'transcriptions'>
/** Takes fewer fields than transcriptions; the answer is English. */
export const translations = codec(
  'openai.translations',
  'translate',
  translated,
  validateTranslation,
) satisfies Codec<'translations'>

function canonical(body: TranscriptionBody, file: Upload | undefined): TranscriptionRequest {
  const { url } = body
  if ((file === undefined) === (url == null)) {
    throw errors.invalidField('file', 'send either a file or a url')
  }
  if (file?.size === 0) throw errors.invalidField('file', 'it is empty')
  if (url != null) assertAudioUrl(url, 'url')
  const format = body.response_format ?? 'json'
  if (body.stream && !STREAMED.includes(format)) {
    throw errors.invalidField('stream', `only ${STREAMED.join(', ')} can be streamed`)
  }
  const references = body.known_speaker_references ?? []
  for (const [at, reference] of references.entries()) assertAudioData(reference, `known_speaker_references[${at}]`)
  return {
    model: body.model,
    file,
    fileType: file && fileTypeOf(file.head(AUDIO_HEAD_BYTES), file.extension, file.contentType),
    url: url ?? undefined,
    seconds: undefined,
    language: body.language ?? undefined,
    prompt: body.prompt ?? undefined,
    response_format: format,
    temperature: body.temperature ?? undefined,
    timestamp_granularities: (format === 'verbose_json' && body.timestamp_granularities) || [],
    include: body.include ?? [],
    chunking_strategy: body.chunking_strategy ?? undefined,
    known_speaker_names: body.known_speaker_names ?? [],
    known_speaker_references: references,
    stream: body.stream ?? false,
    diarize: body.diarize ?? false,
    filler_words: body.filler_words ?? false,
    keyterm: body.keyterm ?? [],
  }
}

/** Token counts when the provider reports them, else the duration in whole seconds. */
function usageOf(ex: Exchange): object {
  const { usage } = ex
  const { prompt = 0, completion = 0, input_audio: audio = 0 } = usage
  if (prompt + completion > 0) {
    return {
      type: 'tokens',
      input_tokens: prompt,
      input_token_details: { text_tokens: Math.max(0, prompt - audio), audio_tokens: audio },
      output_tokens: completion,
      total_tokens: prompt + completion,
      cost: usdOf(ex),
    }
  }
  const { input_audio_hour: hours } = usage
  const seconds = hours === undefined ? likelySeconds(ex.request as TranscriptionRequest) : hours * HOUR_SECONDS
  // Rounded to milliseconds first, so that rounding of hours adds no second.
  return { type: 'duration', seconds: Math.ceil(Math.round(seconds * 1000) / 1000), cost: usdOf(ex) }
}

function wholeTranscript(ex: Exchange, task: 'transcribe' | 'translate'): Encoder {
  const encoder = new CostedEncoder(ex, ({ value }) => {
    const { contentType, body } = written(value as Transcript, ex.request as TranscriptionRequest, usageOf(ex), task)
    encoder.contentType = contentType
    return body
  })
  return encoder
}

/** `transcript.text.delta`, segments with speakers, `transcript.text.done`. */
class EventEncoder extends TypedEncoder {
  #transcript: Transcript | undefined
  #began = false

  write(batch: readonly Event[]): string | undefined {
    let out = ''
    for (const event of batch) {
      if (event.type === 'text') {
        this.#began ||= event.text !== ''
        out += typedEvent('transcript.text.delta', { delta: event.text })
      } else if (event.type === 'result') this.#transcript = event.value as Transcript
    }
    return out === '' ? undefined : out
  }

  end(): string {
    const { ex } = this
    ex.meter.complete(false)
    const transcript = this.#transcript!
    const { response_format: format, known_speaker_names: names } = ex.request as TranscriptionRequest
    let out = this.#began ? '' : typedEvent('transcript.text.delta', { delta: transcript.text })
    if (format === 'diarized_json') {
      for (const segment of diarized(transcript, names)) out += typedEvent('transcript.text.segment', segment)
    }
    const { text, logprobs } = transcript
    return out + typedEvent('transcript.text.done', { text, logprobs, usage: usageOf(ex) })
  }
}
