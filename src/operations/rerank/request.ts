/** The canonical request and answer of `POST /v1/rerank`, and the units that providers charge by (docs/contract.md#rerank). */
import { type Infer, s } from '../../core/schema.ts'
import { TOKEN_BYTES, textSize } from '../../core/usage.ts'

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

const UNIT_DOCUMENTS = 100
/** Bytes. Providers count each piece of a long document as one, which they cut with the query at 500 tokens. */
const PIECE_BYTES = 500 * TOKEN_BYTES
/** Minimum share of a piece that a long query leaves to the document. */
const MIN_PIECE_BYTES = PIECE_BYTES / 10
/** Tokens read of a document when the request names no limit. */
const USUAL_TOKENS = 4096

/** Search units of a request: one for each 100 documents, or pieces of long ones. */
export function searchUnits({ query, documents, max_tokens_per_doc: tokens }: Readonly<RerankRequest>): number {
  const most = (tokens ?? USUAL_TOKENS) * TOKEN_BYTES
  const piece = Math.max(MIN_PIECE_BYTES, PIECE_BYTES - textSize(query))
  let pieces = 0
  for (const text of documents) pieces += Math.max(1, Math.ceil(Math.min(textSize(text), most) / piece))
  return Math.ceil(pieces / UNIT_DOCUMENTS)
}
