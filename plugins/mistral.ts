/** Mistral's dialect of chat completions, `mistral.chat` (wire/mistral-cohere-jina-voyage.md sections A1 to A3). */
import type { Plugin, Translator } from '../src/plugin.ts'
import { MistralDecoder } from './mistral/decode.ts'
import { encode } from './mistral/encode.ts'
import { error } from './mistral/fault.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'mistral.chat',
  encode,
  decoder: (mode, target) => new MistralDecoder(mode, target),
  error,
}

export const plugin = { wires: [chat] } satisfies Plugin
