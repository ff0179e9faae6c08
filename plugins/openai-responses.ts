/** The Responses wire, `openai.responses`: reasoning that can be replayed, phases, and tools that the provider runs. */

import type { Plugin, Translator } from '../src/plugin.ts'
import { ResponsesDecoder } from './openai-responses/decode.ts'
import { encode } from './openai-responses/encode.ts'
import { error } from './openai-responses/error.ts'
import { NATIVE_WIRE, native, withSystem } from './openai-responses/native.ts'
import { withMedia } from './openai-responses/native-media.ts'
import { MAX_NAME_CHARACTERS } from './openai-responses/tools.ts'
import { withClientNames } from './shared/tool-name.ts'

const responses: Translator<'chat'> = {
  op: 'chat',
  wire: 'openai.responses',
  customTools: true,
  identities: { metadata: ['user_id'], client_metadata: undefined },
  takesStop: () => false,
  encode,
  native: {
    wire: NATIVE_WIRE,
    withMedia,
    encode: native,
    withSystem,
    decoder: (mode, target) => new ResponsesDecoder(mode, target, true),
  },
  decoder: (mode, target, input) =>
    withClientNames(new ResponsesDecoder(mode, target), input, undefined, MAX_NAME_CHARACTERS),
  error,
}

/** OpenAI's Responses API. */
export const plugin = { wires: [responses] } satisfies Plugin
