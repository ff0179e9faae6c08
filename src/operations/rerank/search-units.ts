/** Counts the units that rerank providers charge by (docs/contract.md#rerank). */
import { TOKEN_BYTES, textSize } from '../../core/usage.ts'
import type { RerankRequest } from './request.ts'

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
