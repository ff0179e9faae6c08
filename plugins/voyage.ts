/** Voyage's embeddings wire, `voyage.embeddings` (wire/mistral-cohere-jina-voyage.md section D). */
import type { EmbeddingRequest, Plugin, Target, WireRequest } from '../src/plugin.ts'
import { textsOf } from './shared/embeddings/inputs.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'

/** Numbers are what comes when no form is named; naming them is refused. A text that is too long is not cut. */
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

export const plugin = { wires: [embeddings] } satisfies Plugin
