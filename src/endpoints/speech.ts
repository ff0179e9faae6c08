/** `POST /v1/audio/speech`. */
import { speech as codec } from '../codecs/speech.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { speech as operation } from '../operations/speech/index.ts'

/** OpenAI's text to speech; answers audio bytes or a stream of events. */
export const speech: Endpoint = {
  name: 'speech',
  method: 'POST',
  path: '/v1/audio/speech',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 4 * 1024 * 1024,
}
