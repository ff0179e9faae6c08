/** Claude on Vertex AI: the same messages at a Google address (wire/google.md section 1). */
import { type ChatRequest, type Mapping, pathSegment, type Target, type WireRequest } from '../../src/plugin.ts'
import { encode as encodeMessages } from './encode.ts'
import { native as nativeMessages } from './native.ts'

const API_VERSION = 'vertex-2023-10-16'

/** The address names the model, and whether the answer streams; the body names the API version in its place. */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  return atVertex(encodeMessages(request, plainOf(target), stream), stream)
}

/** The same for a client's own body. */
export function native(
  body: Readonly<Record<string, unknown>>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
): WireRequest {
  return atVertex(nativeMessages(body, input, plainOf(target), stream), stream)
}

const plainOf = (target: Target): Target => ({ ...target, mapping: withoutStructuredOutputs(target.mapping) })

function atVertex({ body, ...rest }: WireRequest, stream: boolean): WireRequest {
  const { model, ...fields } = body
  return { ...rest, path: pathOf(String(model), stream), body: { anthropic_version: API_VERSION, ...fields } }
}

/** Google shows ids with their "@" as it is. */
const pathOf = (id: string, stream: boolean): string =>
  `/publishers/anthropic/models/${pathSegment(id).replaceAll('%40', '@')}:${stream ? 'streamRawPredict' : 'rawPredict'}`

/** The surface takes neither `output_config.format` nor strict tools: answers by schema come as a tool's input. */
const copies = new WeakMap<Mapping, Mapping>()
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
