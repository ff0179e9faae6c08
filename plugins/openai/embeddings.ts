/** Embeddings requests in OpenAI's form (docs/contributing/wire-sources.md#openai), which clients use, too. */
import type { EmbeddingRequest, Target, WireRequest } from '../../src/plugin.ts'

/** Inputs are sent unchanged, including token ids. */
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
