/** The chat completions wire, `openai.chat`, which most providers speak, each a little differently. */
import { type Plugin, type Translator, upstreamErrorFrom } from '../src/plugin.ts'
import { ChatDecoder } from './openai/decoder.ts'
import { encode } from './openai/encode.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'openai.chat',
  encode,
  decoder: (mode, target) => new ChatDecoder(mode, target),
  error: (status, body, target) => upstreamErrorFrom(status, body, target.credential?.secret),
}

export const plugin = { wires: [chat] } satisfies Plugin
