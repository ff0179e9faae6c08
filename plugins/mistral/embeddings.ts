/** Embeddings requests of Mistral (docs/contributing/wire-sources.md#mistral); its answers have the OpenAI form. */
import type { EmbeddingRequest, Target, WireRequest } from '../../src/plugin.ts'
import { textsOf } from '../shared/embeddings/inputs.ts'

/** `dimensions` is `output_dimension` here. */
export function encode(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format, dimensions } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input: textsOf(request),
      ...(encoding_format != null && { encoding_format }),
      ...(dimensions != null && { output_dimension: dimensions }),
    },
  }
}
