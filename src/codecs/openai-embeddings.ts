/** Client wire of `POST /v1/embeddings` (docs/contract.md#embeddings). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errorBody } from '../lib/error.ts'
import { type EmbeddingRequest, embeddingRequest } from '../operations/embeddings/request.ts'
import { checkInputs } from './embedding-rules.ts'
import { EmbeddingsEncoder } from './openai-embeddings-encoder.ts'
import { validator } from './validate.ts'

const validate = validator(embeddingRequest)

/** Takes texts and token ids; vectors as numbers or base64. */
export const openAiEmbeddings = {
  wire: 'openai.embeddings',
  decode: (body, ex) => canonical(validate(body), ex),
  encoder: ex => new EmbeddingsEncoder(ex),
  error: errorBody,
  prepare: validate.prepare,
} satisfies Codec<'embeddings'>

/** Known fields only. Providers get the organization as the user, not the caller's value. */
function canonical({ model, input, encoding_format, dimensions }: EmbeddingRequest, ex: Exchange): EmbeddingRequest {
  checkInputs(input)
  return {
    model,
    input,
    ...(encoding_format != null && { encoding_format }),
    ...(dimensions != null && { dimensions }),
    ...(ex.principal && { user: ex.principal.orgId }),
  }
}
