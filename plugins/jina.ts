/** Jina's wires `jina.embeddings` and `jina.rerank` (docs/contributing/wire-sources.md#jina). */
import {
  type EmbeddingRequest,
  objectIn,
  type Plugin,
  type RerankRequest,
  type Target,
  type WireRequest,
} from '../src/plugin.ts'
import { textsOf } from './shared/embeddings/inputs.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'
import { type Ranking, rerankWire, tokensIn } from './shared/rerank.ts'

function encode(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format: form, dimensions } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input: textsOf(request),
      ...(form != null && { embedding_type: form }),
      ...(dimensions != null && { dimensions }),
    },
  }
}

function encodeRerank({ query, documents, top_n }: Readonly<RerankRequest>, { mapping }: Target): WireRequest {
  return {
    path: '/rerank',
    body: { model: mapping.externalId, query, documents, top_n: top_n ?? documents.length, return_documents: false },
  }
}

/** Other providers of this wire answer with a bare list, or with `data`; raw logits are accepted like probabilities. */
function readRanking(answer: unknown): Ranking {
  if (Array.isArray(answer)) return { list: answer, usage: {} }
  const { results, data, usage } = objectIn(answer)
  const { total_tokens: tokens } = objectIn(usage)
  return { list: results ?? data, usage: tokensIn(tokens) }
}

const rerank = rerankWire('jina.rerank', encodeRerank, readRanking)

/** Jina's Embeddings and Reranker APIs. */
export const plugin = { wires: [openAiFormWire('jina.embeddings', encode), rerank] as const } satisfies Plugin
