/** ElevenLabs' wires `elevenlabs.speech` and `elevenlabs.transcriptions` (docs/contributing/wire-sources.md#elevenlabs). */
import {
  type Plugin,
  pathSegment,
  type SpeechRequest,
  type Target,
  type Translator,
  type WireRequest,
} from '../src/plugin.ts'
import { error } from './elevenlabs/error.ts'
import { transcriptions } from './elevenlabs/transcriptions.ts'
import { audioForm, noAudio, voiceOf } from './shared/speech.ts'

/** The voice "Sarah", available to every account. */
const USUAL_VOICE = 'EXAVITQu4vr4xnSDxMaL'
const FORMATS = { mp3: 'mp3_44100_128', wav: 'wav_32000', pcm: 'pcm_24000', opus: 'opus_48000_128' } as const
const SPEED = { least: 0.7, most: 1.2 }

function encode(request: Readonly<SpeechRequest>, { mapping }: Target): WireRequest {
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
  encode,
  bytes: audioForm,
  decoder: (_mode, target) => noAudio(target),
  error,
}

/** ElevenLabs' Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
