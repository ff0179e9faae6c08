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
import { type Spoken, type TranscriptForm, transcriptDecoder } from '../shared/transcript-decoder.ts'
import { fileOf, secondsIn, segmentsIn } from '../shared/transcriptions.ts'
import { error } from './error.ts'

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

function transcriptOf({ text, language, segments, usage }: Spoken): Transcript {
  const { prompt_audio_seconds: seconds } = objectIn(usage)
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: secondsIn(seconds),
    segments: Array.isArray(segments) && segments.length > 0 ? segmentsIn(segments) : undefined,
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
  error,
}
