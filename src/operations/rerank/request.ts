/** The canonical request and answer of `POST /v1/rerank` (docs/contract.md#rerank). */
import { type Infer, s } from '../../core/schema.ts'

const MAX_DOCUMENTS = 1000
const count = s.maybe(s.integer({ minimum: 1 }))

/** As clients send it; ignores `rank_fields` and unknown fields. */
export const rerankBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  query: s.string({ minLength: 1 }),
  documents: s.array(s.either(s.string(), s.open({ text: s.string() })), { minItems: 1, maxItems: MAX_DOCUMENTS }),
  top_n: count,
  return_documents: s.maybe(s.boolean()),
  max_chunks_per_doc: count,
  max_tokens_per_doc: count,
})
/** A valid body of `/v1/rerank` or `/v2/rerank`. */
export type RerankBody = Infer<typeof rerankBody>

/** The canonical request; documents are texts. */
export interface RerankRequest {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  /** Number of results; undefined for all. */
  readonly top_n: number | undefined
  readonly return_documents: boolean
  readonly max_chunks_per_doc: number | undefined
  readonly max_tokens_per_doc: number | undefined
}

/** Value of a rerank `result`: relevant documents in any order. */
export interface RerankResult {
  readonly results: readonly { readonly index: number; readonly relevance_score: number }[]
}

declare module '../../core/ops.ts' {
  interface Ops {
    rerank: RerankRequest
  }
}
