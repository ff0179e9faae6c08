/** Cohere's rerank wire, `cohere.rerank` (docs/contributing/wire-sources.md#cohere), which Together also serves. */
import { countIn, isObject, type RerankRequest, type Target, type WireRequest } from '../../src/plugin.ts'
import { type Ranking, rerankWire } from '../shared/rerank.ts'

function encode(
  { query, documents, top_n, max_tokens_per_doc }: Readonly<RerankRequest>,
  { mapping }: Target,
): WireRequest {
  return {
    path: '/rerank',
    body: {
      model: mapping.externalId,
      query,
      documents,
      ...(top_n !== undefined && { top_n: Math.min(top_n, documents.length) }),
      ...(max_tokens_per_doc !== undefined && { max_tokens_per_doc }),
    },
  }
}

function read(answer: unknown, estimated: number): Ranking {
  const { results, meta } = isObject(answer) ? answer : {}
  const { billed_units } = isObject(meta) ? meta : {}
  const { search_units: units, input_tokens: tokens } = isObject(billed_units) ? billed_units : {}
  const request = countIn(units) || estimated
  const prompt = countIn(tokens)
  return { list: results, usage: prompt === undefined ? { request } : { request, prompt } }
}

/** Cohere's Rerank API, `POST /rerank`. */
export const rerank = rerankWire('cohere.rerank', encode, read)
