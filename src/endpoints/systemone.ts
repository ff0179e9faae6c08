/** `POST /v1/systemone`: typed decisions. */
import { decisions as codec } from '../codecs/decisions.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { decisions as operation } from '../operations/decisions/index.ts'

/** Up to 100 questions about one state; each answer has the type of its question. */
export const systemone: Endpoint = {
  name: 'systemone',
  method: 'POST',
  path: '/v1/systemone',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 4 * 1024 * 1024,
}
