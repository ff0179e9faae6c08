/** Deepgram's wires `deepgram.speech` and `deepgram.transcriptions` (docs/contributing/wire-sources.md#deepgram). */
import type { Plugin, SpeechRequest, Target, Translator, WireRequest } from '../src/plugin.ts'
import { transcriptions } from './deepgram/transcriptions.ts'
import { plainError } from './shared/error.ts'
import { allFormats, audioForm, noAudio, voiceOf } from './shared/speech.ts'

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
function encode(request: Readonly<SpeechRequest>, { mapping }: Target): WireRequest {
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
  encode,
  bytes: audioForm,
  decoder: (_mode, target) => noAudio(target),
  error: plainError,
}

/** Deepgram's Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
