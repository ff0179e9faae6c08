/** Jina's wires `jina.embeddings` and `jina.rerank` (docs/contributing/wire-sources.md#jina). */
import type { EmbeddingRequest, Plugin, RerankRequest, Target, WireRequest } from '../src/plugin.ts'
import { openAiFormWire, textsOf } from './shared/embeddings/openai-form.ts'
import { rankingIn, rerankWire } from './shared/rerank.ts'

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

const rerank = rerankWire('jina.rerank', encodeRerank, rankingIn)

/** Jina's Embeddings and Reranker APIs. */
export const plugin = { wires: [openAiFormWire('jina.embeddings', encode), rerank] as const } satisfies Plugin
