/** OpenAI's transcription wires, `openai.transcriptions` and `openai.translations` (docs/contributing/wire-sources.md#openai). */
import {
  countIn,
  isObject,
  needsSpeakers,
  needsTimes,
  objectIn,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type Usage,
  type WireRequest,
} from '../../src/plugin.ts'
import { plainError } from '../shared/answer.ts'
import { type Spoken, type TranscriptForm, transcriptDecoder } from '../shared/transcript-decoder.ts'
import { fileOf, languageOf, secondsIn, segmentsIn, wordsIn } from '../shared/transcriptions.ts'

/** Times where the client's format needs them, or the price is by the hour: only this form has the length. */
function formatOf(request: Readonly<TranscriptionRequest>, { mapping, price }: Target): string {
  if (needsSpeakers(request)) return 'diarized_json'
  const isTimed = mapping.supports.has('timestamps')
  return isTimed && (needsTimes(request) || price?.rates.input_audio_hour !== undefined) ? 'verbose_json' : 'json'
}

function encode(path: string, request: Readonly<TranscriptionRequest>, target: Target, stream: boolean): WireRequest {
  const { prompt, temperature, timestamp_granularities, include } = request
  const language = languageOf(request)
  const isTranslated = path.endsWith('translations')
  // Models that tell speakers apart refuse a request without one, also where no speakers are wanted.
  const isCutInParts = target.mapping.supports.has('diarization') && !isTranslated
  const { chunking_strategy = isCutInParts ? 'auto' : undefined } = request
  const format = stream ? (needsSpeakers(request) ? 'diarized_json' : 'json') : formatOf(request, target)
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

function transcriptOf(answer: Spoken): Transcript {
  const { text, language, duration, segments, words, logprobs, usage } = answer
  const { seconds } = objectIn(usage)
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: secondsIn(typeof duration === 'string' ? Number.parseFloat(duration) : duration) ?? secondsIn(seconds),
    segments: Array.isArray(segments) ? segmentsIn(segments) : undefined,
    words: Array.isArray(words) ? wordsIn(words, 'word') : undefined,
    logprobs,
  }
}

function tokensIn(usage: unknown): Usage {
  const { input_tokens, output_tokens, input_token_details: details } = objectIn(usage)
  const [prompt, completion] = [countIn(input_tokens), countIn(output_tokens)]
  if (prompt === undefined || completion === undefined) return {}
  const audio = isObject(details) ? countIn(details.audio_tokens) : undefined
  return audio === undefined ? { prompt, completion } : { prompt, completion, input_audio: audio }
}

const form: TranscriptForm = {
  delta: 'transcript.text.delta',
  deltaText: 'delta',
  segment: 'transcript.text.segment',
  done: 'transcript.text.done',
  transcriptOf,
  tokensIn,
}

const wire = <O extends 'transcriptions' | 'translations'>(op: O): Translator<O> => ({
  op,
  wire: `openai.${op}`,
  encode: (request, target, stream) => encode(`/audio/${op}`, request, target, stream && op === 'transcriptions'),
  decoder: (mode, target, input) => transcriptDecoder(mode, target, input!, form),
  error: plainError,
})

/** OpenAI's "Create transcription" API. */
export const transcriptions = wire('transcriptions')
/** OpenAI's "Create translation" API. */
export const translations = wire('translations')
