/**
 * Mistral's wires: its dialects of chat completions and embeddings, `mistral.chat` and `mistral.embeddings`, and
 * `mistral.moderations`, `mistral.ocr` and `mistral.transcriptions` (docs/contributing/wire-sources.md#mistral).
 */
import type { EmbeddingRequest, Plugin, Target, Translator, WireRequest } from '../src/plugin.ts'
import { MistralDecoder } from './mistral/decode.ts'
import { encode } from './mistral/encode.ts'
import { moderations } from './mistral/moderations.ts'
import { ocr } from './mistral/ocr.ts'
import { transcriptions } from './mistral/transcriptions.ts'
import { plainError } from './shared/answer.ts'
import { openAiFormWire, textsOf } from './shared/embeddings/openai-form.ts'
import { fromWireName, withClientNames } from './shared/tool-name.ts'

/** `dimensions` is `output_dimension` here. */
function encodeEmbeddings(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { encoding_format, dimensions } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input: textsOf(request),
      ...(encoding_format != null && { encoding_format }),
      ...(dimensions != null && { output_dimension: dimensions }),
    },
  }
}

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'mistral.chat',
  encode,
  decoder: (mode, target, input) =>
    withClientNames(new MistralDecoder(mode, target, input?.n ?? 1), input, fromWireName),
  error: plainError,
}

/** Mistral's API: chat, embeddings, classifiers, OCR and audio. */
export const plugin = {
  wires: [chat, openAiFormWire('mistral.embeddings', encodeEmbeddings), moderations, ocr, transcriptions] as const,
} satisfies Plugin
