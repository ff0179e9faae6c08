/** Chat requests of the chat completions wire. Provider differences are data, applied to the body afterwards. */
import {
  type ChatRequest,
  errors,
  isObject,
  type Json,
  objectIn,
  schemaInstruction,
  type Target,
  type Tool,
  type WireRequest,
} from '../../src/plugin.ts'
import { ANY_JSON, formatInstruction, lacksWord } from '../shared/any-json.ts'
import { takesBreakpoints } from '../shared/breakpoints.ts'
import { shortName } from '../shared/tool-name.ts'
import { functionOf } from '../shared/tool-schema.ts'
import { encodeMessage } from './messages.ts'
import { addReasoning, boundsReasoning } from './reasoning.ts'
import { withResultsOfCalls, withTextResults } from './results.ts'

/** Parameters with the same meaning on both sides. */
const SAME = [
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'response_format',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'user',
  'verbosity',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
] as const satisfies readonly (keyof ChatRequest)[]

/** Stop sequences of one request. */
export const MAX_STOPS = 4

/** Where quirks drop it, a provider takes no tool by name: that tool is offered alone, and required. */
const NAMED = 'tool_choice.function'

/** Where quirks drop it, a provider takes no answer format beside tools: an instruction replaces it. */
const FORMAT = 'tools.response_format'

/** Does not modify `request`; nested values are shared. Equal requests give equal bytes. */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const { mapping } = target
  // A Messages body may have only empty turns.
  if (request.messages.length === 0) {
    throw errors.invalidParameters('messages have no content; send some text.', 'messages')
  }
  const breakpoints = takesBreakpoints(request, mapping)
  const body: Json = {
    model: mapping.externalId,
    messages: withTextResults(withResultsOfCalls(request.messages)).map(message =>
      encodeMessage(message, target, breakpoints),
    ),
  }
  for (const name of SAME) if (request[name] != null) body[name] = request[name]
  // Not a parameter of OpenAI's; compatible providers that accept it list it.
  if (request.top_k !== undefined && mapping.parameters?.has('top_k')) body.top_k = request.top_k
  if (request.image_config != null && mapping.model.output.includes('image')) body.image_config = request.image_config
  const tools = toolsOf(request)
  const schema = untakenSchema(request, target)
  const { drop } = target.provider.quirks
  const instruction = tools.length > 0 && drop.has(FORMAT) ? formatInstruction(request) : undefined
  if (instruction !== undefined) {
    delete body.response_format
    body.messages = withSystemText(body.messages as Json[], instruction)
  } else if (schema) {
    body.response_format = { type: 'json_object' }
    body.messages = withSystemText(body.messages as Json[], schemaInstruction(schema))
  } else if (lacksWord(request)) body.messages = withSystemText(body.messages as Json[], ANY_JSON)

  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  if (maxTokens != null) body.max_tokens = maxTokens
  if ((request.n ?? 1) > 1) body.n = request.n
  addReasoning(body, request, mapping)
  if (request.effort != null && mapping.supports.has('effort')) body.effort = request.effort
  const tier = request.service_tier ?? 'auto'
  if (tier !== 'auto' && tier !== 'default') body.service_tier = tier

  if (tools.length > 0) {
    const choice = choiceOf(request.tool_choice)
    const named = drop.has(NAMED) ? chosen(tools, choice) : []
    body.tools = named.length > 0 ? named : tools
    if (choice !== undefined) body.tool_choice = named.length > 0 ? 'required' : choice
    if (request.parallel_tool_calls != null) body.parallel_tool_calls = request.parallel_tool_calls
  }
  const search = searchOf(request)
  if (search && mapping.supports.has('web_search')) body.web_search_options = search
  if (stream) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  // Models that list their parameters without it refuse it: their answers are cut.
  if (request.stop && mapping.parameters?.has('stop') !== false) body.stop = request.stop.slice(0, MAX_STOPS)
  const sent: WireRequest = { path: '/chat/completions', body }
  if (boundsReasoning(request, mapping)) sent.output = { limits: 2 }
  return sent
}

/** The answer schema, for a model that supports JSON but no schemas. */
function untakenSchema({ response_format: format }: Readonly<ChatRequest>, { mapping }: Target): Json | undefined {
  if (format?.type !== 'json_schema') return undefined
  const { supports } = mapping
  return supports.has('json_output') && !supports.has('structured_outputs') ? format.json_schema.schema : undefined
}

/** Inserted after the leading system messages: some providers accept none further on. */
function withSystemText(messages: readonly Json[], text: string): Json[] {
  const first = messages.findIndex(({ role }) => role !== 'system')
  return messages.toSpliced(first < 0 ? messages.length : first, 0, { role: 'system', content: text })
}

/** Functions and custom tools; tool search and web search are model features without an entry here. */
function toolsOf(request: Readonly<ChatRequest>): Json[] {
  const tools: Json[] = []
  for (const tool of request.tools ?? []) {
    if (tool.type === 'function') tools.push({ type: 'function', function: functionOf(tool.function) })
    else if (tool.type === 'custom') tools.push({ type: 'custom', custom: customOf(tool.custom) })
  }
  return tools
}

const customOf = ({ name, description, format }: (Tool & { type: 'custom' })['custom']): Json => ({
  name: shortName(name),
  ...(description === undefined ? {} : { description }),
  ...(format === undefined ? {} : { format }),
})

/** Undefined for a choice of search, which has no tool here. */
function choiceOf(choice: ChatRequest['tool_choice']): string | Json | undefined {
  if (choice == null || typeof choice === 'string') return choice ?? undefined
  const { type } = choice
  if (type === 'function') return { type, function: { name: shortName(choice.function.name) } }
  return type === 'custom' ? { type, custom: { name: shortName(choice.custom.name) } } : undefined
}

const chosen = (tools: readonly Json[], choice: string | Json | undefined): Json[] =>
  isObject(choice) ? tools.filter(tool => nameOf(tool) === nameOf(choice)) : []

const nameOf = ({ function: called, custom }: Json): unknown => objectIn(called ?? custom).name

/** `web_search_options`, if search is requested. */
function searchOf(request: Readonly<ChatRequest>): Json | undefined {
  const tool = request.tools?.find(tool => tool.type === 'web_search')
  if (!tool && request.web_search !== true) return undefined
  const options: Json = {}
  if (tool?.search_context_size !== undefined) options.search_context_size = tool.search_context_size
  const { city, region, country, timezone } = tool?.user_location ?? {}
  const place = Object.entries({ city, region, country, timezone }).filter(([, value]) => value !== undefined)
  if (place.length > 0) options.user_location = { type: 'approximate', approximate: Object.fromEntries(place) }
  return options
}
