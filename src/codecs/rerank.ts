/** Client wire of `POST /v1/rerank`, for clients of Cohere, Jina and Voyage (docs/contract.md#rerank). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errors } from '../lib/error.ts'
import { type RerankBody, type RerankRequest, type RerankResult, rerankBody } from '../operations/rerank/request.ts'
import { answerModelOf, usdOf } from './accounting.ts'
import { checkedBy, validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const validate = validator(rerankBody)

/** Answers at most `top_n` results, the best first. */
export const rerank = {
  wire: 'rerank',
  decode: body => canonical(validate(body)),
  encoder: ex => new WholeEncoder<RerankResult>(ex, written),
  ...checkedBy(validate),
} satisfies Codec<'rerank'>

function canonical(body: RerankBody): RerankRequest {
  const documents = body.documents.map((document, index) => {
    const text = typeof document === 'string' ? document : document.text
    const path = `documents[${index}]`
    if (text === '') throw errors.invalidField(path, 'must not be empty')
    return text
  })
  return {
    model: body.model,
    query: body.query,
    documents,
    top_n: body.top_n ?? undefined,
    return_documents: body.return_documents ?? false,
    max_chunks_per_doc: body.max_chunks_per_doc ?? undefined,
    max_tokens_per_doc: body.max_tokens_per_doc ?? undefined,
  }
}

/** Best first, ties by index; documents are the caller's own, not the provider's copies. */
function written({ results }: RerankResult, ex: Exchange): object {
  const { documents, top_n = documents.length, return_documents } = ex.request as RerankRequest
  const best = results
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top_n)
    .map(({ index, relevance_score }) => ({
      index,
      relevance_score,
      document: return_documents ? { text: documents[index] } : undefined,
    }))
  const { usage } = ex
  const tokens = usage.prompt || undefined
  return {
    id: ex.id,
    object: 'list',
    model: answerModelOf(ex),
    results: best,
    meta: {
      api_version: { version: '1' },
      billed_units: { input_tokens: tokens, total_tokens: tokens, search_units: usage.request },
    },
    usage: { prompt_tokens: tokens, total_tokens: tokens, cost: usdOf(ex) },
  }
}
