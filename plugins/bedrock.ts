/** The wires of AWS Bedrock: `bedrock.converse`, whose `base_url` is the host of a region, and `bedrock.rerank`. */
import type { Plugin, Translator } from '../src/plugin.ts'
import { ConverseDecoder } from './bedrock/decode.ts'
import { encode } from './bedrock/encode.ts'
import { error } from './bedrock/error.ts'
import { imageEdits, images } from './bedrock/images.ts'
import { rerank } from './bedrock/rerank.ts'
import { withClientProperties } from './shared/claude/property-names.ts'
import { fromWireName, withClientNames } from './shared/tool-name.ts'

const converse: Translator<'chat'> = {
  op: 'chat',
  wire: 'bedrock.converse',
  cacheMarks: true,
  identities: { requestMetadata: undefined },
  inlineMedia: true,
  encode,
  decoder: (_mode, target, input) =>
    withClientProperties(withClientNames(new ConverseDecoder(target, input), input, fromWireName), input),
  error,
}

/** AWS's Bedrock Runtime API (Converse, InvokeModel) and Agent Runtime API (Rerank). */
export const plugin = { wires: [converse, { ...rerank, error }, images, imageEdits] as const } satisfies Plugin
