/** A chat request on Cohere's wire (docs/contributing/wire-sources.md#cohere). */
import {
  budgetOf,
  type ChatRequest,
  effortOf,
  errors,
  type Json,
  type Mapping,
  type Message,
  type Target,
  type Tool,
  type WireRequest,
} from '../../src/plugin.ts'
import { formatInstruction, nonObjectInstruction, nonObjectSchema } from '../shared/any-json.ts'
import { toWireName } from '../shared/tool-name.ts'
import { toolSchema } from '../shared/tool-schema.ts'
import { historyOf } from './history.ts'

/** Stop sequences of one request. */
export const MAX_STOPS = 5

/**
 * Sends only fields of the wire, which rejects others with 422. Does not modify `request`; equal requests give equal
 * bytes.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const thinking = thinkingOf(request, target.mapping)
  const asksFormat = formatInstruction(request) !== undefined
  const tools = toolsOf(request, asksFormat)
  // The wire accepts no answer format beside tools: an instruction replaces it.
  const format = tools.tools === undefined ? formatOf(request) : undefined
  const instruction = tools.tools === undefined ? nonObjectInstruction(request) : formatInstruction(request)
  const asked: Message[] = instruction ? [{ role: 'system', content: instruction }] : []
  const { messages, documents } = historyOf([...asked, ...request.messages], target, {
    // The wire accepts no answer format beside documents, so documents then move into the messages.
    documents: format === undefined,
    thinking: thinking?.type !== 'disabled',
  })
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  const { stop, seed, top_k: k } = request
  const { temperature, top_p: p, frequency_penalty: frequency, presence_penalty: presence } = request
  const body: Json = {
    model: target.mapping.externalId,
    messages,
    ...(documents.length > 0 && { documents }),
    ...tools,
    ...(format && { response_format: format }),
    ...(thinking && { thinking }),
    ...(maxTokens == null ? {} : { max_tokens: maxTokens }),
    ...(temperature == null ? {} : { temperature: Math.max(temperature, 0) }),
    ...(p == null ? {} : { p: clamp(p, 0.01, 0.99) }),
    ...(k === undefined ? {} : { k }),
    ...(stop && { stop_sequences: stop.slice(0, MAX_STOPS) }),
    ...(seed === undefined ? {} : { seed }),
    ...(frequency == null ? {} : { frequency_penalty: clamp(frequency, 0, 1) }),
    ...(presence == null ? {} : { presence_penalty: clamp(presence, 0, 1) }),
    ...(stream && { stream: true }),
  }
  return { path: '/chat', body }
}

const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)

/** A schema is a kind of `json_object` here; text is the default. */
function formatOf(request: Readonly<ChatRequest>): Json | undefined {
  const { response_format: format } = request
  if (format?.type !== 'json_schema') return format?.type === 'json_object' ? { type: 'json_object' } : undefined
  if (nonObjectSchema(request)) return undefined
  return { type: 'json_object', json_schema: { type: 'object', ...(format.json_schema.schema as Json) } }
}

/** The wire's `thinking`; undefined leaves the model's default, which is to think if it can. */
function thinkingOf(
  request: Readonly<ChatRequest>,
  mapping: Mapping,
): { type: 'enabled' | 'disabled'; token_budget?: number } | undefined {
  if (!mapping.supports.has('reasoning')) return undefined
  const budget = budgetOf(request)
  if (budget !== undefined) return { type: 'enabled', token_budget: budget }
  return effortOf(request, mapping) === 'none' ? { type: 'disabled' } : undefined
}

type FunctionTool = Extract<Tool, { type: 'function' }>

/**
 * `tools`, `tool_choice` and `strict_tools`, which applies to all tools at once. A tool is forced by offering no other.
 * `formatted`: the answer has a format, which the wire accepts only without tools. Tools that may not be called are left out.
 */
export function toolsOf(request: Readonly<ChatRequest>, formatted: boolean): Json {
  let tools = (request.tools ?? []).filter((tool): tool is FunctionTool => tool.type === 'function')
  const { tool_choice: choice } = request
  if (tools.length === 0) return {}
  if (formatted && choice === 'none') return {}
  const named = typeof choice === 'object' && choice?.type === 'function' ? choice.function.name : undefined
  if (named !== undefined) {
    tools = tools.filter(tool => tool.function.name === named)
    if (tools.length === 0) {
      const at = 'tool_choice.function.name'
      throw errors.invalidField(at, `"${named}" must be the name of one of the tools.`)
    }
  }
  return {
    tools: tools.map(functionTool),
    ...((choice === 'required' || named !== undefined) && { tool_choice: 'REQUIRED' }),
    ...(choice === 'none' && { tool_choice: 'NONE' }),
    ...(tools.some(tool => tool.function.strict) && { strict_tools: true }),
  }
}

function functionTool({ function: { name, description, parameters } }: FunctionTool): Json {
  return {
    type: 'function',
    function: {
      name: toWireName(name),
      ...(description === undefined ? {} : { description }),
      parameters: toolSchema(parameters),
    },
  }
}
