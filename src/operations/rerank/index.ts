/** Rerank: `POST /v1/rerank` and `/v2/rerank` (docs/contract.md#rerank). */
import type { Operation } from '../../core/operation.ts'
import { TOKEN_CHARACTERS } from '../../core/usage.ts'
import { demo } from './demo.ts'
import type { RerankRequest } from './request.ts'

/** Documents per search unit: providers count each piece of a long one, which they cut with the query at 500 tokens. */
const UNIT_DOCUMENTS = 100
const PIECE = 500 * TOKEN_CHARACTERS
/** Of a document so many tokens are read where the request names no limit. */
const USUAL_TOKENS = 4096

/** Priced by prompt tokens, or by the request of up to 100 documents. */
export const rerank: Operation<'rerank'> = {
  name: 'rerank',
  impliedBy: ({ output }) => output.includes('rerank'),
  isPriced: ({ rates }) => rates.prompt !== undefined || rates.request !== undefined,
  requirements: [],
  /** The model reads the query with each document. */
  promptCharacters({ query, documents }) {
    let sum = documents.length * query.length
    for (const { length } of documents) sum += length
    return sum
  },
  extras: request => ({ request: Math.ceil(piecesIn(request) / UNIT_DOCUMENTS) }),
  tuning: { max_chunks_per_doc: 'max_chunks_per_doc', max_tokens_per_doc: 'max_tokens_per_doc' },
  demo,
}

function piecesIn({ query, documents, max_tokens_per_doc: tokens }: Readonly<RerankRequest>): number {
  const most = (tokens ?? USUAL_TOKENS) * TOKEN_CHARACTERS
  let pieces = 0
  for (const { length } of documents) pieces += Math.max(1, Math.ceil(Math.min(length + query.length, most) / PIECE))
  return pieces
}
