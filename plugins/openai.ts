/** OpenAI's wires that most providers speak, each a little differently: `openai.chat` and `openai.embeddings`. */
import { type Plugin, type Target, type Translator, upstreamErrorFrom } from '../src/plugin.ts'
import { openAiForm } from './embeddings/openai-form.ts'
import { ChatDecoder } from './openai/decoder.ts'
import { encode as encodeEmbeddings } from './openai/embeddings.ts'
import { encode } from './openai/encode.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'openai.chat',
  encode,
  decoder: (mode, target) => new ChatDecoder(mode, target),
  error,
}

const embeddings: Translator<'embeddings'> = {
  op: 'embeddings',
  wire: 'openai.embeddings',
  encode: encodeEmbeddings,
  decoder: (_mode, target) => openAiForm(target),
  error,
}

function error(status: number, body: string, target: Target) {
  return upstreamErrorFrom(status, body, target.credential?.secret)
}

export const plugin = { wires: [chat, embeddings] as const } satisfies Plugin
