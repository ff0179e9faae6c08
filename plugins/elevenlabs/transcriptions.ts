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

/** The wire refuses a request for one longer term; terms only tune. */
const isTerm = (term: string): boolean => term.length < 50 && term.trim().split(/\s+/).length <= 5

function encode(request: Readonly<TranscriptionRequest>, { mapping }: Target): WireRequest {
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
