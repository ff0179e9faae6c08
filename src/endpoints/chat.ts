/** `POST /v1/chat/completions`. */
import { openAiChat } from '../codecs/openai-chat.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { chat as chatOperation } from '../operations/chat/index.ts'

/** OpenAI's chat completions, streamed or whole. */
export const chat: Endpoint = {
  name: 'chat',
  method: 'POST',
  path: '/v1/chat/completions',
  chain: 'inference',
  operation: chatOperation,
  codec: openAiChat,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
}
