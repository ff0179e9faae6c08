/** Mistral's transcription wire, `mistral.transcriptions` (docs/contributing/wire-sources.md#mistral). */
import {
  needsSpeakers,
  needsTimes,
  objectIn,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type WireRequest,
} from '../../src/plugin.ts'
import { plainError } from '../shared/answer.ts'
import { type Spoken, type TranscriptForm, transcriptDecoder } from '../shared/transcript-decoder.ts'
import { fileOf, languageOf, secondsIn, segmentsIn, wordsIn } from '../shared/transcriptions.ts'

type Request = Readonly<TranscriptionRequest>

/** Speakers have segments only. Words are the segments of a list of their own. */
function granularityOf(request: Request): 'segment' | 'word' | undefined {
  if (needsSpeakers(request)) return 'segment'
  if (!needsTimes(request)) return undefined
  return request.timestamp_granularities.includes('word') ? 'word' : 'segment'
}

function encode(request: Request, { mapping }: Target, stream: boolean): WireRequest {
  const { url, temperature, keyterm } = request
  const granularity = granularityOf(request)
  // It is not compatible with times: the transcript would be empty.
  const language = granularity === undefined ? languageOf(request) : undefined
  return {
    path: '/audio/transcriptions',
    body: {
      model: mapping.externalId,
      ...(url !== undefined && { file_url: url }),
      ...(language !== undefined && { language }),
      ...(temperature !== undefined && { temperature }),
      ...(needsSpeakers(request) && { diarize: true }),
      ...(keyterm.length > 0 && { context_bias: keyterm.map(withoutGaps) }),
      ...(granularity !== undefined && { timestamp_granularities: [granularity] }),
      ...(stream && { stream: true }),
    },
    files: url === undefined ? [fileOf(request)] : [],
  }
}

/** Terms of several words are joined: the wire takes neither spaces nor commas in one. */
const withoutGaps = (term: string): string => term.trim().replace(/[\s,]+/g, '_')

function transcriptOf({ text, language, segments, usage }: Spoken, request: Request): Transcript {
  const { prompt_audio_seconds: seconds } = objectIn(usage)
  const timed = Array.isArray(segments) && segments.length > 0 ? segments : undefined
  const isWords = granularityOf(request) === 'word'
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: secondsIn(seconds),
    segments: timed && !isWords ? segmentsIn(timed) : undefined,
    words: timed && isWords ? wordsIn(timed, 'text') : undefined,
  }
}

const form: TranscriptForm = {
  delta: 'transcription.text.delta',
  deltaText: 'text',
  segment: 'transcription.segment',
  done: 'transcription.done',
  language: 'transcription.language',
  transcriptOf,
}

/** Mistral's Audio Transcriptions API, `POST /audio/transcriptions`. */
export const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'mistral.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode,
  decoder: (mode, target, input) => transcriptDecoder(mode, target, input!, form),
  error: plainError,
}
