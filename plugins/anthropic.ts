/**
 * The Anthropic Messages wire, `anthropic.messages`, and its form at Google, `anthropic.vertex`. The API version is a
 * header, which the provider's manifest may set, or a field of the body.
 */
import { countIn, errorReader, type Plugin, type Target, type Translator, type WireRequest } from '../src/plugin.ts'
import { BETA_HEADER, headerOf } from './anthropic/betas.ts'
import { MessagesDecoder } from './anthropic/decode.ts'
import { encode } from './anthropic/encode.ts'
import { errorOf } from './anthropic/error.ts'
import { native, withMedia } from './anthropic/native.ts'
import { schemaByTool } from './anthropic/tools.ts'
import { encode as encodeVertex, native as nativeVertex, plainOf } from './anthropic/vertex.ts'
import { counter, only } from './shared/answer.ts'
import { isVisible } from './shared/claude/blocks.ts'
import { withClientProperties } from './shared/claude/property-names.ts'

const error = errorReader(errorOf)

const VERSION = 'anthropic-version'
/** The latest version with sampling parameters (docs/contributing/wire-sources.md#anthropic). */
const DEFAULT_VERSION = '2023-06-01'

function versioned(made: WireRequest, { provider }: Target): WireRequest {
  if (headerOf(provider.headers, VERSION)) return made
  made.headers = { [VERSION]: DEFAULT_VERSION, ...made.headers }
  return made
}

/** Fields of `/messages/count_tokens` (docs/contributing/wire-sources.md#anthropic). */
const COUNTED = ['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config']

const count = counter(
  ({ path, body, headers }) => ({
    path: `${path}/count_tokens`,
    body: only(body, COUNTED),
    ...(headers && { headers }),
  }),
  answer => countIn(answer.input_tokens),
)

const messages: Translator<'chat'> = {
  op: 'chat',
  wire: 'anthropic.messages',
  cacheMarks: true,
  identities: { metadata: ['user_id'] },
  takesStop: isVisible,
  encode: (request, target, stream) => versioned(encode(request, target, stream), target),
  // Native answers never arrive by tool: a client's own body does not get the tool that `encode` adds.
  native: {
    wire: 'anthropic.messages',
    headers: [BETA_HEADER],
    withMedia,
    encode: (body, input, target, stream, given) => versioned(native(body, input, target, stream, given), target),
    decoder: (mode, target) => new MessagesDecoder(mode, target),
  },
  decoder: (mode, target, input) =>
    withClientProperties(new MessagesDecoder(mode, target, schemaByTool(input, target)), input),
  count,
  error,
}

const vertex: Translator<'chat'> = {
  op: 'chat',
  wire: 'anthropic.vertex',
  cacheMarks: true,
  identities: { metadata: ['user_id'] },
  takesStop: isVisible,
  encode: encodeVertex,
  native: { wire: 'anthropic.messages', withMedia, encode: nativeVertex },
  decoder: (mode, target, input) =>
    withClientProperties(new MessagesDecoder(mode, target, schemaByTool(input, plainOf(target))), input),
  error,
}

/** Anthropic's Messages API, and the same on Vertex AI. */
export const plugin = { wires: [messages, vertex] } satisfies Plugin
