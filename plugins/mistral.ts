/**
 * Mistral's wires: its dialects of chat completions and embeddings, `mistral.chat` and `mistral.embeddings`, and
 * `mistral.moderations`, `mistral.ocr` and `mistral.transcriptions` (docs/contributing/wire-sources.md#mistral).
 */
import type { Plugin, Translator } from '../src/plugin.ts'
import { MistralDecoder } from './mistral/decode.ts'
import { encode as encodeEmbeddings } from './mistral/embeddings.ts'
import { encode } from './mistral/encode.ts'
import { error } from './mistral/error.ts'
import { moderations } from './mistral/moderations.ts'
import { ocr } from './mistral/ocr.ts'
import { transcriptions } from './mistral/transcriptions.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'mistral.chat',
  encode,
  decoder: (mode, target, input) => new MistralDecoder(mode, target, input?.n ?? 1),
  error,
}

/** Mistral's API: chat, embeddings, classifiers, OCR and audio. */
export const plugin = {
  wires: [
    chat,
    openAiFormWire('mistral.embeddings', encodeEmbeddings, error),
    moderations,
    ocr,
    transcriptions,
  ] as const,
} satisfies Plugin
