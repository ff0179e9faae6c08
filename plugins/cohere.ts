/** Cohere's wires `cohere.chat`, `cohere.embeddings` and `cohere.rerank` (docs/contributing/wire-sources.md#cohere). */
import type { Plugin, Translator } from '../src/plugin.ts'
import { CohereDecoder } from './cohere/decode.ts'
import { decoder, encode as encodeEmbeddings } from './cohere/embeddings.ts'
import { encode, MAX_STOPS } from './cohere/encode.ts'
import { error } from './cohere/error.ts'
import { rerank } from './cohere/rerank.ts'
import { first } from './shared/stops.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'cohere.chat',
  takesStop: first(MAX_STOPS),
  encode,
  decoder: (mode, target, input) => new CohereDecoder(mode, target, input),
  error,
}

const embeddings: Translator<'embeddings'> = {
  op: 'embeddings',
  wire: 'cohere.embeddings',
  maxInputs: 96,
  encode: encodeEmbeddings,
  decoder: (_mode, target, input) => decoder(target, input),
  error,
}

/** Cohere's API, version 2: Chat, Embed and Rerank. */
export const plugin = { wires: [chat, embeddings, rerank] as const } satisfies Plugin
