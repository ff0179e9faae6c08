/** Voyage's wires `voyage.embeddings` and `voyage.rerank` (docs/contributing/wire-sources.md#voyage). */
import type { EmbeddingRequest, Plugin, RerankRequest, Target, WireRequest } from '../src/plugin.ts'
import { openAiFormWire, textsOf } from './shared/embeddings/openai-form.ts'
import { rankingIn, rerankWire } from './shared/rerank.ts'

/** Numbers are the default format; naming it is rejected. Texts that are too long are not truncated. */
function encode(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format, dimensions } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input: textsOf(request),
      truncation: false,
      ...(encoding_format === 'base64' && { encoding_format }),
      ...(dimensions != null && { output_dimension: dimensions }),
    },
  }
}

const embeddings = { ...openAiFormWire('voyage.embeddings', encode), maxInputs: 1000 }

/** Texts that are too long are truncated, as other providers do implicitly. */
function encodeRerank({ query, documents, top_n }: Readonly<RerankRequest>, { mapping }: Target): WireRequest {
  return {
    path: '/rerank',
    body: {
      model: mapping.externalId,
      query,
      documents,
      ...(top_n !== undefined && { top_k: Math.min(top_n, documents.length) }),
      return_documents: false,
      truncation: true,
    },
  }
}

const rerank = rerankWire('voyage.rerank', encodeRerank, rankingIn)

/** Voyage's Embeddings and Rerankers APIs. */
export const plugin = { wires: [embeddings, rerank] as const } satisfies Plugin
