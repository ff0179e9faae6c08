/** `POST /v1/messages`. */
import { anthropicMessages } from '../codecs/anthropic-messages.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { chat } from '../operations/chat/index.ts'

/** Anthropic's messages, streamed or whole. */
export const messages: Endpoint = {
  name: 'messages',
  method: 'POST',
  path: '/v1/messages',
  chain: 'inference',
  operation: chat,
  codec: anthropicMessages,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
}
