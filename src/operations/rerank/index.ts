/** Rerank: `POST /v1/rerank` and `/v2/rerank` (docs/contract.md#rerank). */
import type { Operation } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import { demo } from './demo.ts'
import { searchUnits } from './search-units.ts'

/** Priced by prompt tokens, or by the request of up to 100 documents. */
export const rerank: Operation<'rerank'> = {
  name: 'rerank',
  impliedBy: ({ output }) => output.includes('rerank'),
  isPriced: ({ rates }) => rates.prompt !== undefined || rates.request !== undefined,
  requirements: [],
  /** The model reads the query with each document. */
  promptSize({ query, documents }) {
    let sum = documents.length * textSize(query)
    for (const text of documents) sum += textSize(text)
    return sum
  },
  extras: request => ({ request: searchUnits(request) }),
  tuning: { max_chunks_per_doc: 'max_chunks_per_doc', max_tokens_per_doc: 'max_tokens_per_doc' },
  demo,
}
