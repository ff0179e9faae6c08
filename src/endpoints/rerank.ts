/** `POST /v1/rerank`, and `/v2/rerank` for Cohere's own client. */
import { rerank as codec } from '../codecs/rerank.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { rerank as operation } from '../operations/rerank/index.ts'

const row = {
  name: 'rerank',
  method: 'POST',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
} as const

/** Both paths take and answer the same. */
export const rerank: readonly Endpoint[] = [
  { ...row, path: '/v1/rerank' },
  { ...row, path: '/v2/rerank' },
]
