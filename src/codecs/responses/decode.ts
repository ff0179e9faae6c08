/** A Responses body as a chat request (docs/responses.md). */

import type { ChatRequest, Tool } from '../../core/chat-request.ts'
import { excerptOf, isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { Count } from '../../json/shape.ts'
import { textKey } from '../../json/text-key.ts'
import { errors } from '../../lib/error.ts'
import { withMediaAside } from '../chat-parts.ts'
import { checkChat } from '../chat-rules.ts'
import { passedParameters } from '../passed-parameters.ts'
import { validator } from '../validate.ts'
import { InputReader } from './input.ts'
import { type ResponsesRequest, responsesRequest } from './schema.ts'
import { isSearch, ToolNames } from './tool-names.ts'

/** Checks a body against the schema; throws a 400 that names the field. */
export const validate = validator(responsesRequest)

/** A decoded body. */
interface Decoded {
  readonly request: ChatRequest
  readonly names: ToolNames
  /** Path of a field that providers of other wires cannot serve. */
  readonly only: string | undefined
}

/** `values`: those of the body. Throws a 400 that names the field which is wrong. */
export function decode(body: unknown, values: number): Decoded {
  const given = validate(body)
  refuseStored(given)
  const names = new ToolNames(given.tools, given.input)
  const input = new InputReader(names, new Count(values))
  if (typeof given.input === 'string') input.read({ role: 'user', content: given.input }, 'input')
  else for (const [i, item] of (given.input ?? []).entries()) input.read(item, `input[${i}]`)
  const messages = input.end()
  if (input.only === undefined && !messages.some(({ role }) => role !== 'system')) {
    throw errors.invalidField('input', 'must contain an item that is not empty')
  }
  if (given.instructions) messages.unshift({ role: 'system', content: given.instructions })
  const request: ChatRequest = { model: given.model, messages }
  const only = input.only ?? names.only
  Object.assign(request, toolsOf(given, names, only !== undefined), textOf(given), settingsOf(given))
  checkChat(request)
  request.messages = withMediaAside(request.messages)
  return { request, names, only }
}

/** Refuses what needs a stored response or conversation, or one that outlives its request. */
function refuseStored(given: ResponsesRequest & { conversation?: unknown; prompt?: unknown }): void {
  if (given.previous_response_id) {
    const id = given.previous_response_id.slice(0, 100)
    throw errors.unsupported(
      `previous_response_id: no response "${id}" is stored here; send the whole conversation in input.`,
      'previous_response_id',
      'previous_response_not_found',
    )
  }
  if (given.conversation != null) {
    throw errors.unsupported(
      'conversation: conversations are not stored here; send their items in input.',
      'conversation',
    )
  }
  if (given.background === true) {
    throw errors.unsupported(
      'background: this gateway does not run responses in the background. Leave it out.',
      'background',
    )
  }
  if (given.prompt != null) {
    throw errors.unsupported('prompt: prompts are not stored here; send instructions and input.', 'prompt')
  }
}

/** `native`: only providers of this wire get the request, and its choice as it came. */
function toolsOf(
  { tool_choice: choice, parallel_tool_calls: parallel }: ResponsesRequest,
  names: ToolNames,
  native: boolean,
) {
  const { tools } = names
  if (tools.length === 0) return {}
  const made: Partial<ChatRequest> = { tools }
  if (parallel != null) made.parallel_tool_calls = parallel
  if (choice == null) return made
  return Object.assign(
    made,
    typeof choice === 'string' ? { tool_choice: choice } : chosen(choice, tools, names, native),
  )
}

function chosen(choice: Json, tools: Tool[], names: ToolNames, native: boolean): Partial<ChatRequest> {
  const { type, name, namespace } = choice
  if (isSearch(type)) return { tool_choice: { type: 'web_search' } }
  // It may be a hosted tool, or one that an item adds.
  if (native) return {}
  if (type === 'function' || type === 'custom') return { tool_choice: named(flatOf(choice, names), tools) }
  if (type !== 'allowed_tools') {
    const given = excerptOf(name ?? namespace ?? type)
    throw errors.unsupported(`tool_choice: no provider here serves the choice of "${given}".`, 'tool_choice')
  }
  const allowed = new Set(
    listIn(choice.tools)
      .filter(isObject)
      .map(tool => textKey(flatOf(tool, names))),
  )
  const left = tools.filter(tool => allowed.has(tool.type === 'function' ? textKey(tool.function.name) : tool.type))
  if (left.length === 0) throw errors.invalidField('tool_choice.tools', 'must name one of the tools')
  return { tools: left, tool_choice: choice.mode === 'required' ? 'required' : 'auto' }
}

/** A tool's name at providers; a search has the name of its type. */
const flatOf = ({ type, name, namespace }: Json, names: ToolNames): string => {
  const given = textIn(name)
  if (given !== undefined) return names.flat(given, namespace)
  return isSearch(type) ? 'web_search' : (textIn(type) ?? '')
}

function named(name: string, tools: readonly Tool[]) {
  if (!tools.some(tool => tool.type === 'function' && tool.function.name === name)) {
    throw errors.invalidField('tool_choice.name', `must name one of the tools, got "${name.slice(0, 100)}"`)
  }
  return { type: 'function' as const, function: { name } }
}

function textOf({ text }: ResponsesRequest): Partial<ChatRequest> {
  const { format, verbosity } = text ?? {}
  const made: Partial<ChatRequest> = {}
  if (verbosity) made.verbosity = verbosity
  if (format?.type === 'json_object') made.response_format = { type: 'json_object' }
  else if (format?.type === 'json_schema') {
    const { name, description, schema, strict } = format
    const shape = { name, schema, ...(description && { description }), ...(strict != null && { strict }) }
    made.response_format = { type: 'json_schema', json_schema: shape }
  }
  return made
}

const RETENTIONS: ReadonlySet<unknown> = new Set(['in_memory', '24h'])
const MODES: ReadonlySet<unknown> = new Set(['implicit', 'explicit'])

/** Ignores unknown values, as chat does. */
function cacheOf(given: Json): Partial<ChatRequest> {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = given
  const made: Json = {}
  if (RETENTIONS.has(retention)) made.prompt_cache_retention = retention
  if (isObject(options)) {
    const { mode, ttl } = options
    made.prompt_cache_options = { ...(MODES.has(mode) && { mode }), ...(ttl === '30m' && { ttl }) }
  }
  return made
}

const TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'flex', 'priority'])

function settingsOf(given: ResponsesRequest): Partial<ChatRequest> {
  const made: Partial<ChatRequest> = {}
  const { temperature, top_p, stream, max_output_tokens: limit, prompt_cache_key: key, user } = given
  if (temperature != null) made.temperature = temperature
  if (top_p != null) made.top_p = top_p
  if (stream != null) made.stream = stream
  if (limit != null) made.max_tokens = limit
  if (key) made.prompt_cache_key = key
  Object.assign(made, cacheOf(given))
  const { stop } = passedParameters(given)
  if (stop) made.stop = stop
  if (user) made.user = user
  const { effort, mode, context } = given.reasoning ?? {}
  if (mode || context) {
    made.reasoning = { ...(effort && { effort }), ...(mode && { mode }), ...(context && { context }) }
  } else if (effort) made.reasoning_effort = effort
  if (TIERS.has(given.service_tier)) made.service_tier = given.service_tier as NonNullable<ChatRequest['service_tier']>
  return made
}
