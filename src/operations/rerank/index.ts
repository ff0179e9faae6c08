/** Rerank: `POST /v1/rerank` and `/v2/rerank` (docs/contract.md#rerank). */
import { type Operation, SimulatedError, type Simulation } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import { searchUnits } from './request.ts'

const MAX_DEMO_DOCUMENTS = 1000

interface DemoRerank {
  readonly query: string
  readonly documents: readonly string[]
  readonly top_n?: number
}

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu))

/** Simulates Cohere's rerank API: scores are the share of the query's words in a document. */
const demo: Readonly<Record<string, Simulation>> = {
  '/rerank'({ json }) {
    const { query, documents, top_n } = json as DemoRerank
    if (documents.length > MAX_DEMO_DOCUMENTS) {
      throw new SimulatedError(`documents: at most ${MAX_DEMO_DOCUMENTS}, got ${documents.length}`, 'documents')
    }
    const wanted = wordsOf(query)
    const results = documents.map((document, index) => {
      const shared = [...wordsOf(document)].filter(word => wanted.has(word)).length
      return { index, relevance_score: shared / Math.max(1, wanted.size) }
    })
    results.sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    const units = Math.ceil(documents.length / 100)
    return { json: { id: 'demo', results: results.slice(0, top_n), meta: { billed_units: { search_units: units } } } }
  },
}

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
