/** Deepgram's transcription wire, `deepgram.transcriptions` (docs/contributing/wire-sources.md#deepgram). */
import {
  isObject,
  listIn,
  needsSpeakers,
  objectIn,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  type WireRequest,
} from '../../src/plugin.ts'
import { errorIn, plainError } from '../shared/error.ts'
import { languageOf, secondsIn, segmentsIn, transcriptEvents, wordsIn } from '../shared/transcriptions.ts'
import { parsed, WholeDecoder } from '../shared/whole.ts'

/** A file is sent as the body, an address as JSON. */
function encode(request: Readonly<TranscriptionRequest>, { mapping }: Target): WireRequest {
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
export const transcriptions: Translator<'transcriptions'> = {
  op: 'transcriptions',
  wire: 'deepgram.transcriptions',
  alwaysTimed: true,
  takesUrls: true,
  encode,
  decoder: (_mode, target, input) =>
    new WholeDecoder(frame => transcriptEvents(transcriptOf(parsed(frame), target), input!, target)),
  error: plainError,
}
