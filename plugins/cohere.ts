/** Cohere's chat wire, `cohere.chat` (wire/mistral-cohere-jina-voyage.md section B1). */
import type { Plugin, Translator } from '../src/plugin.ts'
import { CohereDecoder } from './cohere/decode.ts'
import { encode } from './cohere/encode.ts'
import { error } from './cohere/fault.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'cohere.chat',
  encode,
  decoder: (mode, target) => new CohereDecoder(mode, target),
  error,
}

export const plugin = { wires: [chat] } satisfies Plugin
