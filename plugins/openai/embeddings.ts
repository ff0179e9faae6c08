/** Embeddings requests of the OpenAI form (docs/wire-sources.md#openai), which is also the clients'. */
import type { EmbeddingRequest, Target, WireRequest } from '../../src/plugin.ts'

/** Inputs go as they came, token ids among them. */
export function encode(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { input, encoding_format, dimensions, user } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input,
      ...(encoding_format != null && { encoding_format }),
      ...(dimensions != null && { dimensions }),
      ...(user != null && { user }),
    },
  }
}
