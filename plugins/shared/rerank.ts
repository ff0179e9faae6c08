/** Shared by the rerank wires: one whole response with a list of scores (docs/contract.md#rerank). */
import {
  countIn,
  type Decoder,
  type Event,
  errors,
  objectIn,
  type RerankRequest,
  type RerankResult,
  searchUnits,
  type Target,
  type Translator,
} from '../../src/plugin.ts'
import { errorIn, parsed, plainError, WholeDecoder } from './answer.ts'

/** Holds the list of scores and the usage read from a response. */
export interface Ranking {
  readonly list: unknown
  readonly usage: Extract<Event, { type: 'usage' }>['usage']
}

/** Reads a list and its tokens. Some providers answer with a bare list, or with `data`; raw logits pass like probabilities. */
export function rankingIn(answer: unknown): Ranking {
  if (Array.isArray(answer)) return { list: answer, usage: {} }
  const { results, data, usage } = objectIn(answer)
  const prompt = countIn(objectIn(usage).total_tokens)
  return { list: results ?? data, usage: prompt === undefined ? {} : { prompt } }
}

/** A rerank wire. `read` gets the parsed body, and the search units that count where a provider counts none. */
export const rerankWire = (
  wire: string,
  encode: Translator<'rerank'>['encode'],
  read: (answer: unknown, units: number) => Ranking,
): Translator<'rerank'> => ({
  op: 'rerank',
  wire,
  encode,
  decoder: (_mode, target, input) => decoder(read, target, input!),
  error: plainError,
})

const decoder = (read: Parameters<typeof rerankWire>[2], target: Target, request: Readonly<RerankRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame)
    const { list, usage } = read(answer, searchUnits(request))
    if (!Array.isArray(list)) throw errorIn(answer, 'list of results', target)
    const value: RerankResult = { results: resultsIn(list, request.documents.length) }
    return [
      { type: 'usage', usage },
      { type: 'result', value },
    ]
  })

/** Throws for an index that is none of a document's or stands twice, and for a score that is no number. */
function resultsIn(list: readonly unknown[], documents: number): RerankResult['results'] {
  const seen = new Set<number>()
  return list.map(entry => {
    const { index, relevance_score, relevanceScore } = objectIn(entry)
    const score = relevance_score ?? relevanceScore
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= documents || seen.has(index)) {
      throw errors.invalidAnswer(`it holds the index ${JSON.stringify(index)} among ${documents} documents`)
    }
    if (typeof score !== 'number' || !Number.isFinite(score)) throw errors.invalidAnswer('a score is not a number')
    seen.add(index)
    return { index, relevance_score: score }
  })
}
