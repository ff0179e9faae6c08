/** ElevenLabs' transcription wire, `elevenlabs.transcriptions` (docs/contributing/wire-sources.md#elevenlabs). */
import {
  isObject,
  listIn,
  needsSpeakers,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type WireRequest,
} from '../../src/plugin.ts'
import { errorIn } from '../shared/error.ts'
import { fileOf, languageOf, secondsIn, transcriptEvents, wordsIn } from '../shared/transcriptions.ts'
import { parsed, WholeDecoder } from '../shared/whole.ts'
import { error } from './error.ts'

function encode(request: Readonly<TranscriptionRequest>, { mapping }: Target): WireRequest {
  const { url, temperature, keyterm } = request
  const language = languageOf(request)
  return {
    path: '/speech-to-text',
    body: {
      model_id: mapping.externalId,
      timestamps_granularity: 'word',
      ...(url !== undefined && { source_url: url }),
      ...(language !== undefined && { language_code: language }),
      ...(needsSpeakers(request) && { diarize: true }),
      ...(keyterm.length > 0 && { keyterms: keyterm }),
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
export const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'elevenlabs.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode,
  decoder: (_mode, target, input) =>
    new WholeDecoder(frame => transcriptEvents(transcriptOf(parsed(frame), target), input!, target)),
  error,
}
