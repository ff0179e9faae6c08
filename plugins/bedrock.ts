/** The Converse wire of AWS Bedrock, `bedrock.converse`. `base_url` is the host of a region, without a path. */
import { type Plugin, refusals, type Translator } from '../src/plugin.ts'
import { ConverseDecoder } from './bedrock/decode.ts'
import { encode } from './bedrock/encode.ts'
import { faultOf } from './bedrock/fault.ts'

const error = refusals((body, target, status) => faultOf(body, target, { status }))

const converse: Translator<'chat'> = {
  op: 'chat',
  wire: 'bedrock.converse',
  inlineMedia: true,
  encode,
  decoder: (_mode, target) => new ConverseDecoder(target),
  error,
}

export const plugin = { wires: [converse] } satisfies Plugin
