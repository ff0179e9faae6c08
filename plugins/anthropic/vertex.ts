/** Claude on Vertex AI: the same messages at a Google address (wire/google.md section 1). */
import {
  type ChatRequest,
  isObject,
  type Json,
  listIn,
  type Mapping,
  pathSegment,
  type Target,
  type WireRequest,
} from '../../src/plugin.ts'
import { encode as encodeMessages } from './encode.ts'
import { native as nativeMessages } from './native.ts'
import { isAdaptive } from './thinking.ts'
import { answerChoice, answerSchema, answerTool } from './tools.ts'

const API_VERSION = 'vertex-2023-10-16'

/** The address names the model, and whether the answer streams; the body names the API version in its place. */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  return atVertex(encodeMessages(request, plainOf(target), stream), stream)
}

/** The same for a client's own body. */
export function native(
  body: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
): WireRequest {
  const made = nativeMessages(body, input, target, stream)
  return atVertex({ ...made, body: plainBody(made.body, input, target.mapping) }, stream)
}

/** Strict tools become plain ones, and the form of the answer the tool that gives it. */
function plainBody(body: Json, input: Readonly<ChatRequest>, mapping: Mapping): Json {
  const plain = { ...body }
  if (Array.isArray(body.tools)) plain.tools = body.tools.map(({ strict: _, ...tool }: Json) => tool)
  if (!isObject(body.output_config)) return plain
  const { format, ...config } = body.output_config
  if (Object.keys(config).length > 0) plain.output_config = config
  else delete plain.output_config
  const schema = format == null ? undefined : answerSchema(input)
  if (!schema) return plain
  const tools = listIn(plain.tools)
  const choice = mayThink(body, mapping) ? { type: 'auto' } : answerChoice(input, tools.length > 0)
  plain.tools = [...tools, answerTool(schema)]
  plain.tool_choice = { ...choice, disable_parallel_tool_use: true }
  return plain
}

/** Whether forcing a tool could be refused: without a word of it, newer models think or not, as each is used to. */
const mayThink = ({ thinking }: Json, mapping: Mapping): boolean =>
  isObject(thinking) ? thinking.type !== 'disabled' : isAdaptive(mapping)

/** The target as this wire has it. */
export const plainOf = (target: Target): Target => ({ ...target, mapping: withoutStructuredOutputs(target.mapping) })

function atVertex({ body, ...rest }: WireRequest, stream: boolean): WireRequest {
  const { model, ...fields } = body
  return { ...rest, path: pathOf(String(model), stream), body: { anthropic_version: API_VERSION, ...fields } }
}

/** Google shows ids with their "@" as it is. */
const pathOf = (id: string, stream: boolean): string =>
  `/publishers/anthropic/models/${pathSegment(id).replaceAll('%40', '@')}:${stream ? 'streamRawPredict' : 'rawPredict'}`

const copies = new WeakMap<Mapping, Mapping>()

/** The surface takes neither `output_config.format` nor strict tools: answers by schema come as a tool's input. */
function withoutStructuredOutputs(mapping: Mapping): Mapping {
  if (!mapping.supports.has('structured_outputs')) return mapping
  let copy = copies.get(mapping)
  if (!copy) {
    const supports = new Set(mapping.supports)
    supports.delete('structured_outputs')
    copy = { ...mapping, supports }
    copies.set(mapping, copy)
  }
  return copy
}
