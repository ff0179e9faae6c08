/** ElevenLabs' wires `elevenlabs.speech` and `elevenlabs.transcriptions` (docs/contributing/wire-sources.md#elevenlabs). */
import {
  errorReader,
  isObject,
  listIn,
  needsSpeakers,
  objectIn,
  type Plugin,
  pathSegment,
  type SpeechRequest,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  textIn,
  upstreamError,
  type WireRequest,
} from '../src/plugin.ts'
import { errorIn } from './shared/answer.ts'
import { findingsError } from './shared/findings.ts'
import { audioForm, noAudio, voiceOf } from './shared/speech.ts'
import { fileOf, languageOf, secondsIn, wholeTranscripts, wordsIn } from './shared/transcriptions.ts'

/** `{detail: {status, message}}`; a spent quota also has status 401. Other bodies are read in the common dialects. */
const error = errorReader((body, target, status) => {
  const detail = objectIn(body).detail
  if (!isObject(detail)) return findingsError(body, target, status)
  const code = textIn(detail.status)
  const reported = { message: textIn(detail.message) ?? code ?? 'unknown error', code }
  return upstreamError(code === 'quota_exceeded' ? 402 : status, reported, target)
})

/** The voice "Sarah", available to every account. */
const USUAL_VOICE = 'EXAVITQu4vr4xnSDxMaL'
const FORMATS = { mp3: 'mp3_44100_128', wav: 'wav_32000', pcm: 'pcm_24000', opus: 'opus_48000_128' } as const
const SPEED = { least: 0.7, most: 1.2 }

function encodeSpeech(request: Readonly<SpeechRequest>, { mapping }: Target): WireRequest {
  const { input, speed, response_format = 'mp3' } = request
  const format = FORMATS[response_format as keyof typeof FORMATS]
  const voice = pathSegment(voiceOf(request, mapping, USUAL_VOICE))
  return {
    path: `/text-to-speech/${voice}/stream?output_format=${format}`,
    body: {
      text: input,
      model_id: mapping.externalId,
      ...(speed !== undefined && {
        voice_settings: { speed: Math.min(SPEED.most, Math.max(SPEED.least, speed)) },
      }),
    },
  }
}

/** ElevenLabs' "Stream speech" API, `POST /text-to-speech/{voice}/stream`. */
const speech: Translator<'speech'> = {
  op: 'speech',
  wire: 'elevenlabs.speech',
  outputFormats: Object.keys(FORMATS),
  encode: encodeSpeech,
  bytes: audioForm,
  decoder: (_mode, target) => noAudio(target),
  error,
}

/** The wire refuses a request for one longer term; terms only tune. */
const isTerm = (term: string): boolean => term.length < 50 && term.trim().split(/\s+/).length <= 5

function encodeTranscription(request: Readonly<TranscriptionRequest>, { mapping }: Target): WireRequest {
  const { url, temperature } = request
  const keyterms = request.keyterm.filter(isTerm)
  const language = languageOf(request)
  return {
    path: '/speech-to-text',
    body: {
      model_id: mapping.externalId,
      timestamps_granularity: 'word',
      ...(url !== undefined && { source_url: url }),
      ...(language !== undefined && { language_code: language }),
      ...(needsSpeakers(request) && { diarize: true }),
      ...(keyterms.length > 0 && { keyterms }),
      ...(temperature !== undefined && { temperature }),
    },
    files: url === undefined ? [fileOf(request)] : [],
  }
}

function transcriptOf(answer: unknown, target: Target): Transcript {
  if (!isObject(answer) || typeof answer.text !== 'string') throw errorIn(answer, 'text', target)
  const { text, language_code: language, audio_duration_secs: duration } = answer
  const words = listIn(answer.words).filter(word => isObject(word) && word.type !== 'spacing')
  return {
    text: text.trim(),
    language: typeof language === 'string' ? language : undefined,
    duration: secondsIn(duration),
    words: words.length > 0 ? wordsIn(words, 'text') : undefined,
  }
}

/** ElevenLabs' "Create transcript" API, `POST /speech-to-text`. */
const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'elevenlabs.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode: encodeTranscription,
  decoder: wholeTranscripts(transcriptOf),
  error,
}

/** ElevenLabs' Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
