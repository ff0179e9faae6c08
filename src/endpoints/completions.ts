/** `POST /v1/completions`. */
import { completions as codec } from '../codecs/completions.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { chat } from '../operations/chat/index.ts'

/** OpenAI's legacy completions, served as chat. */
export const completions: Endpoint = {
  name: 'completions',
  method: 'POST',
  path: '/v1/completions',
  chain: 'inference',
  operation: chat,
  codec,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
}
