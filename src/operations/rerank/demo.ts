/** Ranking of the simulated provider, in Cohere's form: the share of the query's words in a document. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'

const MAX_DOCUMENTS = 1000

interface DemoRerank {
  readonly query: string
  readonly documents: readonly string[]
  readonly top_n?: number
}

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu))

/** The path of Cohere's rerank API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/rerank'({ json }) {
    const { query, documents, top_n } = json as DemoRerank
    if (documents.length > MAX_DOCUMENTS) {
      throw new SimulatedError(`documents: at most ${MAX_DOCUMENTS}, got ${documents.length}`, 'documents')
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
