/** `POST /v1/messages/count_tokens`. */
import { countTokens as codec } from '../codecs/count-tokens.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { chat } from '../operations/chat/index.ts'
import { estimated } from './token-estimate.ts'

/** Anthropic's token count. Costs nothing; the gateway's estimate replaces a provider's failure. */
export const countTokens: Endpoint = {
  name: 'count_tokens',
  method: 'POST',
  path: '/v1/messages/count_tokens',
  chain: 'inference',
  operation: chat,
  codec,
  serve: 'upstream',
  counts: true,
  instead: estimated,
  bodyLimit: 32 * 1024 * 1024,
}
