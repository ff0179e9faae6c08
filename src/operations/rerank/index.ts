/** Rerank: `POST /v1/rerank` and `/v2/rerank` (docs/contract.md#rerank). */
import type { Operation } from '../../core/operation.ts'
import { demo } from './demo.ts'

/** Documents per search unit. */
const UNIT_DOCUMENTS = 100

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
  extras: ({ documents }) => ({ request: Math.ceil(documents.length / UNIT_DOCUMENTS) }),
  tuning: { max_chunks_per_doc: 'max_chunks_per_doc', max_tokens_per_doc: 'max_tokens_per_doc' },
  demo,
}
