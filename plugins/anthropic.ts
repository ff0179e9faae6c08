/** The Anthropic Messages wire, `anthropic.messages`. The API version is a header of the provider's manifest. */
import { type Plugin, type Target, type Translator, upstreamErrorFrom } from '../src/plugin.ts'
import { MessagesDecoder } from './anthropic/decode.ts'
import { encode } from './anthropic/encode.ts'
import { faultOf } from './anthropic/fault.ts'

const messages: Translator<'chat'> = {
  op: 'chat',
  wire: 'anthropic.messages',
  encode,
  decoder: (mode, target) => new MessagesDecoder(mode, target),
  error,
}

function error(status: number, body: string, target: Target) {
  const asText = () => upstreamErrorFrom(status, body, target.credential?.secret)
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return asText()
  }
  return faultOf(parsed, target, status) ?? asText()
}

export const plugin = { wires: [messages] } satisfies Plugin
