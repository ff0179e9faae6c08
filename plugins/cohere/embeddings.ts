/** Cohere's embeddings (docs/contributing/wire-sources.md#cohere): one list of vectors per requested format. */
import { type Decoder, type EmbeddingRequest, isObject, type Target, type WireRequest } from '../../src/plugin.ts'
import { boundsOf, textsOf, vectorsWanted } from '../shared/embeddings/inputs.ts'
import { embeddingsOf, promptTokens } from '../shared/embeddings/openai-form.ts'
import { errorIn } from '../shared/error.ts'
import { parsed, WholeDecoder } from '../shared/whole.ts'

/**
 * `input_type` is required and unknown to clients of this endpoint: documents for search. Texts that are too long are
 * rejected, as at other providers, not truncated.
 */
export function encode(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format, dimensions } = request
  return {
    path: '/embed',
    body: {
      model: mapping.externalId,
      input_type: 'search_document',
      texts: textsOf(request),
      embedding_types: [encoding_format ?? 'float'],
      ...(dimensions != null && { output_dimension: dimensions }),
      truncate: 'NONE',
    },
  }
}

/** Reads an answer of the Embed API; throws a GatewayError where `input` has another number of texts than vectors. */
export const decoder = (target: Target, input?: Readonly<EmbeddingRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame, boundsOf(input))
    const lists = isObject(answer) ? answer.embeddings : undefined
    if (!isObject(answer) || !isObject(lists)) throw errorIn(answer, 'vectors', target)
    const vectors = lists.float ?? lists.base64
    const { billed_units: billed } = isObject(answer.meta) ? answer.meta : {}
    const value = embeddingsOf(Array.isArray(vectors) ? vectors : [], vectorsWanted(input))
    return [...promptTokens(isObject(billed) && billed.input_tokens), { type: 'result', value }]
  })
