/** Claude on Vertex AI: the Messages wire at a Google address (docs/contributing/wire-sources.md#gemini). */
import {
  type ChatRequest,
  isObject,
  type Json,
  listIn,
  type Mapping,
  objectIn,
  pathSegment,
  perObject,
  type Target,
  type WireRequest,
} from '../../src/plugin.ts'
import { dropThoughts } from '../shared/claude/loop.ts'
import { cannotForce, isAdaptive, mustThink } from '../shared/claude/thinking.ts'
import { encode as encodeMessages } from './encode.ts'
import { loopOf, native as nativeMessages } from './native.ts'
import type { NativeTurn } from './native-turns.ts'
import { answerChoice, answerSchema, answerTool } from './tools.ts'
import { isThought } from './turns.ts'

const API_VERSION = 'vertex-2023-10-16'

/** The address contains the model and whether the answer streams; the body contains the API version instead. */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  return atVertex(encodeMessages(request, plainOf(target), stream), stream)
}

/** Builds the request from a body in the client's own Messages format. */
export function native(
  body: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
): WireRequest {
  const schema = answerSchema(input)
  const given = schema ? withoutThinking(body, input, target.mapping) : body
  const made = nativeMessages(given, input, target, stream)
  return atVertex({ ...made, body: plainBody(made.body, input, schema) }, stream)
}

/** Makes strict tools plain, and the answer format a tool. */
function plainBody(body: Json, input: Readonly<ChatRequest>, schema: Json | undefined): Json {
  const plain = { ...body }
  if (Array.isArray(body.tools)) plain.tools = body.tools.map(({ strict: _, ...tool }: Json) => tool)
  if (isObject(body.output_config)) {
    const { format: _, ...config } = body.output_config
    if (Object.keys(config).length > 0) plain.output_config = config
    else delete plain.output_config
  }
  if (!schema) return plain
  dropThoughts(loopOf(body.messages as NativeTurn[]), isThought)
  const tools = listIn(plain.tools)
  plain.tools = [...tools, answerTool(schema)]
  plain.tool_choice = { ...answerChoice(input, tools.length > 0), disable_parallel_tool_use: true }
  return plain
}

/** The body without thinking, which excludes forced tools: newer models think unless it is turned off. */
function withoutThinking(body: Readonly<Json>, input: Readonly<ChatRequest>, mapping: Mapping): Json {
  const { thinking, ...rest } = body
  if (isObject(thinking) && thinking.type === 'disabled') return body
  if (!isAdaptive(mapping)) return rest
  if (mustThink(input, mapping)) throw cannotForce(mapping, 'response_format')
  const { effort, ...config } = objectIn(body.output_config)
  // Some models accept their highest efforts only with thinking.
  const kept = effort === 'xhigh' || effort === 'max' ? config : body.output_config
  return { ...rest, thinking: { type: 'disabled' }, ...(kept !== undefined && { output_config: kept }) }
}

/** The target with the features of this wire. */
export const plainOf = (target: Target): Target => ({ ...target, mapping: withoutStructuredOutputs(target.mapping) })

function atVertex({ body, ...rest }: WireRequest, stream: boolean): WireRequest {
  const { model, ...fields } = body
  return { ...rest, path: pathOf(String(model), stream), body: { anthropic_version: API_VERSION, ...fields } }
}

/** Google expects the "@" of ids unescaped. */
const pathOf = (id: string, stream: boolean): string =>
  `/publishers/anthropic/models/${pathSegment(id).replaceAll('%40', '@')}:${stream ? 'streamRawPredict' : 'rawPredict'}`

/** The surface accepts neither `output_config.format` nor strict tools: answers by schema arrive as a tool's input. */
const withoutStructuredOutputs = perObject((mapping: Mapping): Mapping => {
  const supports = new Set(mapping.supports)
  return supports.delete('structured_outputs') ? { ...mapping, supports } : mapping
})
