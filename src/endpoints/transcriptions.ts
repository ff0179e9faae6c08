/** `POST /v1/audio/transcriptions` and `/v1/audio/translations`: forms, or JSON with an address in place of a file. */
import { transcriptions as transcriptionCodec, translations as translationCodec } from '../codecs/transcriptions.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { transcriptions as transcription, translations as translation } from '../operations/transcriptions/index.ts'

const row = {
  name: 'transcriptions',
  method: 'POST',
  chain: 'inference',
  serve: 'upstream',
  body: ['multipart', 'json'],
  bodyLimit: 64 * 1024 * 1024,
} as const

/** OpenAI's transcriptions and translations of audio. */
export const transcriptions: readonly Endpoint[] = [
  { ...row, path: '/v1/audio/transcriptions', operation: transcription, codec: transcriptionCodec },
  { ...row, path: '/v1/audio/translations', operation: translation, codec: translationCodec },
]
