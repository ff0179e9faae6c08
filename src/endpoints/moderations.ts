/** `POST /v1/moderations`. */
import { moderations as codec } from '../codecs/moderations.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { moderations as operation } from '../operations/moderations/index.ts'

/** OpenAI's moderations. */
export const moderations: Endpoint = {
  name: 'moderations',
  method: 'POST',
  path: '/v1/moderations',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
}
