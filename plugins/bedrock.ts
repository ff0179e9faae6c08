/** The Converse wire of AWS Bedrock, `bedrock.converse`. `base_url` is the host of a region, without a path. */
import { type Plugin, type Target, type Translator, upstreamErrorFrom } from '../src/plugin.ts'
import { ConverseDecoder } from './bedrock/decode.ts'
import { encode } from './bedrock/encode.ts'
import { faultOf } from './bedrock/fault.ts'

const converse: Translator<'chat'> = {
  op: 'chat',
  wire: 'bedrock.converse',
  inlineMedia: true,
  encode,
  decoder: (_mode, target) => new ConverseDecoder(target),
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
  return faultOf(parsed, target, { status }) ?? asText()
}

export const plugin = { wires: [converse] } satisfies Plugin
