/** Jina's embeddings wire, `jina.embeddings` (wire/mistral-cohere-jina-voyage.md section C). */
import type { EmbeddingRequest, Plugin, Target, WireRequest } from '../src/plugin.ts'
import { textsOf } from './shared/embeddings/inputs.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'

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

export const plugin = { wires: [openAiFormWire('jina.embeddings', encode)] } satisfies Plugin
