/** `POST /v1/embeddings`. */
import { openAiEmbeddings } from '../codecs/openai-embeddings.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { embeddings as embeddingsOperation } from '../operations/embeddings/index.ts'

/** OpenAI's embeddings. */
export const embeddings: Endpoint = {
  name: 'embeddings',
  method: 'POST',
  path: '/v1/embeddings',
  chain: 'inference',
  operation: embeddingsOperation,
  codec: openAiEmbeddings,
  serve: 'upstream',
  bodyLimit: 32 * 1024 * 1024,
  // 300,000 token ids, OpenAI's limit per request, in up to 2,048 inputs, and the other fields.
  maxValues: 310_000,
}
