/** `POST /v1/responses`. */
import { openAiResponses } from '../codecs/openai-responses.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { chat } from '../operations/chat/index.ts'

/** OpenAI's responses, streamed or whole. What the project stores, `storedResponses` reads. */
export const responses: Endpoint = {
  name: 'responses',
  method: 'POST',
  path: '/v1/responses',
  chain: 'inference',
  operation: chat,
  codec: openAiResponses,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
}
