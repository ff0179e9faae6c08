/** Deepgram's wires `deepgram.speech` and `deepgram.transcriptions` (docs/contributing/wire-sources.md#deepgram). */
import {
  isObject,
  listIn,
  needsSpeakers,
  objectIn,
  type Plugin,
  type SpeechRequest,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type WireRequest,
} from '../src/plugin.ts'
import { errorIn, plainError } from './shared/answer.ts'
import { allFormats, audioForm, noAudio, voiceOf } from './shared/speech.ts'
import { languageOf, secondsIn, segmentsIn, wholeTranscripts, wordsIn } from './shared/transcriptions.ts'

/** Query parameters by format. */
const FORMATS = {
  mp3: 'encoding=mp3',
  opus: 'encoding=opus&container=ogg',
  wav: 'encoding=linear16&container=wav',
  pcm: 'encoding=linear16&container=none&sample_rate=24000',
  flac: 'encoding=flac',
  aac: 'encoding=aac',
} as const

/** The voice is a part of the model's name: one of the model's generation, or that its mapping names, replaces the model. */
function encodeSpeech(request: Readonly<SpeechRequest>, { mapping }: Target): WireRequest {
  const { input, response_format = 'mp3' } = request
  const { externalId: own, voices = {} } = mapping
  const voice = voiceOf(request, mapping, '')
  const generationOf = (model: string) => /^aura-(?:\d+-)?/.exec(model)?.[0]
  const isKnown = generationOf(voice) === generationOf(own) || Object.values(voices).includes(voice)
  const model = isKnown && voice.startsWith('aura-') ? voice : own
  return { path: `/speak?model=${encodeURIComponent(model)}&${FORMATS[response_format]}`, body: { text: input } }
}

/** Deepgram's Text to Speech API, `POST /speak`. */
const speech: Translator<'speech'> = {
  op: 'speech',
  wire: 'deepgram.speech',
  outputFormats: allFormats,
  maxInputCharacters: 2000,
  encode: encodeSpeech,
  bytes: audioForm,
  decoder: (_mode, target) => noAudio(target),
  error: plainError,
}

/** A file is sent as the body, an address as JSON. */
function encodeTranscription(request: Readonly<TranscriptionRequest>, { mapping }: Target): WireRequest {
  const { file, fileType, url, keyterm, filler_words } = request
  const language = languageOf(request, true)
  const query = new URLSearchParams({
    model: mapping.externalId,
    smart_format: 'true',
    punctuate: 'true',
    utterances: 'true',
  })
  if (language === undefined) query.set('detect_language', 'true')
  else query.set('language', language)
  if (needsSpeakers(request)) query.set('diarize', 'true')
  if (filler_words) query.set('filler_words', 'true')
  for (const term of keyterm) query.append('keyterm', term)
  const path = `/listen?${query}`
  if (!file) return { path, body: { url } }
  return { path, body: {}, bytes: file.pieces, headers: { 'content-type': fileType!.contentType } }
}

/** Joins several channels to one text, by lines. */
function transcriptOf(answer: unknown, target: Target): Transcript {
  const { results, metadata } = objectIn(answer)
  const channels = isObject(results) ? listIn(results.channels).filter(isObject) : []
  if (!isObject(results) || channels.length === 0) throw errorIn(answer, 'channels', target)
  const first = channels.map(({ alternatives }) => listIn(alternatives)[0]).map(one => objectIn(one))
  const texts = first.map(({ transcript }) => transcript)
  if (!texts.every(text => typeof text === 'string')) throw errorIn(answer, 'transcript', target)
  const { duration } = objectIn(metadata)
  const { detected_language: language } = channels[0]!
  const words = first.flatMap(({ words }) => [
    ...wordsIn(
      listIn(words).map(word => (isObject(word) ? { ...word, said: word.punctuated_word ?? word.word } : word)),
      'said',
    ),
  ])
  const segments = segmentsIn(results.utterances)
  return {
    text: texts.join('\n'),
    language: typeof language === 'string' ? language : undefined,
    duration: secondsIn(duration),
    segments: segments.length > 0 ? segments : undefined,
    words: words.length > 0 ? words : undefined,
  }
}

/** Deepgram's Speech to Text API for recordings, `POST /listen`. */
const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'deepgram.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode: encodeTranscription,
  decoder: wholeTranscripts(transcriptOf),
  error: plainError,
}

/** Deepgram's Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
