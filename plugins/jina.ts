/** Jina's embeddings wire, `jina.embeddings` (wire/mistral-cohere-jina-voyage.md section C). */
import {
  type EmbeddingRequest,
  type Plugin,
  type Target,
  type Translator,
  upstreamErrorFrom,
  type WireRequest,
} from '../src/plugin.ts'
import { textsOf } from './embeddings/inputs.ts'
import { openAiForm } from './embeddings/openai-form.ts'

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

const embeddings: Translator<'embeddings'> = {
  op: 'embeddings',
  wire: 'jina.embeddings',
  encode,
  decoder: (_mode, target) => openAiForm(target),
  error: (status, body, target) => upstreamErrorFrom(status, body, target.credential?.secret),
}

export const plugin = { wires: [embeddings] } satisfies Plugin
