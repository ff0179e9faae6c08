/** A Messages body as a chat request (docs/contract.md#messages). */
import type { ChatRequest, Message, Tool } from '../../core/chat-request.ts'
import { isObject, type Json, jsonIn, listIn, objectIn, textIn } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { markedMessage } from '../../operations/chat/auto-cache.ts'
import { compact, withMediaAside } from '../chat-parts.ts'
import { checkChat } from '../chat-rules.ts'
import { checkRequest } from './check.ts'
import { historyOf } from './history.ts'
import { refuseOpenAiShape } from './openai-shape.ts'
import { markOf, partsOf } from './parts.ts'
import type { MessagesRequest, MessagesTool } from './schema.ts'
import { toolsIn } from './tools-in.ts'

/** Throws a 400 that names invalid fields. Drops fields without a chat form: `native` sends them. */
export function decode(body: unknown): ChatRequest {
  refuseThread(body)
  refuseOpenAiShape(body)
  const given = checkRequest(body)
  const placed = toolsIn(given) as readonly Placed[]
  refuseUnchecked(given, placed)
  const request: ChatRequest = {
    model: given.model,
    messages: [...systemOf(given.system), ...historyOf(given.messages)],
    max_tokens: given.max_tokens,
    ...reasoningOf(given),
    ...toolsOf(given, placed),
    ...callerOf(given),
  }
  const { temperature, top_p, stream, service_tier: tier } = given
  if (temperature != null) request.temperature = temperature
  if (top_p != null) request.top_p = top_p
  if (stream != null) request.stream = stream
  const stop = given.stop_sequences?.filter(sequence => sequence !== '') ?? []
  if (stop.length > 0) request.stop = stop
  if (given.top_k) request.top_k = given.top_k
  const format = formatOf(given)
  if (format) {
    const { schema }: { schema: Json } = format
    const strict = schema.type === 'object' && isStrict(schema) && { strict: true }
    request.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema, ...strict } }
  }
  const canonical = tier === 'standard_only' ? 'default' : tier
  if (isTier(canonical)) request.service_tier = canonical
  const mark = markOf(given.cache_control)
  const last = request.messages.at(-1)
  if (mark && last) request.messages[request.messages.length - 1] = markedMessage(last, mark)
  checkChat(request)
  request.messages = withMediaAside(request.messages)
  return request
}

type WebSearch = Extract<Tool, { type: 'web_search' }>

/** A tool that has passed its schema, with its place. */
interface Placed {
  readonly tool: MessagesTool & { model?: unknown }
  readonly at: string
}

/** Refuses fields that let the provider choose the models called, and their price. */
function refuseUnchecked(
  given: MessagesRequest & { safeguards?: unknown; fallbacks?: unknown },
  placed: readonly Placed[],
): void {
  if (given.safeguards !== undefined) {
    throw errors.unsupported(
      'safeguards are not supported: they need a beta that the gateway does not pass on.',
      'safeguards',
    )
  }
  const another = 'another model, whose access and price would not be checked'
  if (given.fallbacks != null) {
    throw errors.unsupported(`fallbacks would let the provider answer with ${another}; use model lists.`, 'fallbacks')
  }
  for (const { tool, at } of placed) {
    if (tool.type == null || tool.type === 'custom' || tool.model == null) continue
    throw errors.unsupported(`${at}.model would let the provider ask ${another}.`, `${at}.model`)
  }
}

/** The answer format, from either field. */
function formatOf({ output_config: output, output_format: older }: MessagesRequest) {
  if (!older || !output?.format) return older ?? output?.format
  throw errors.combination(
    'output_format is the older name of output_config.format, and this request has both. Send only output_config.format.',
    'output_format',
  )
}

/** Keywords of schemas that OpenAI takes as strict. */
const STRICT: ReadonlySet<string> = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', '$ref', '$defs'],
  ...['$schema', 'definitions', 'title', 'description', 'pattern', 'minItems', 'maxItems', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
])

/** Whether OpenAI takes a schema as strict: its objects are closed and require all their members, unlike on this wire. */
function isStrict(schema: unknown): boolean {
  if (!isObject(schema) || !Object.keys(schema).every(keyword => STRICT.has(keyword))) return false
  const { type, items, anyOf, $ref, $defs, definitions, additionalProperties: more } = schema
  const properties = objectIn(schema.properties)
  const required = new Set(listIn(schema.required))
  if ((type ?? anyOf ?? $ref) === undefined) return false
  const isClosed = more === false && Object.keys(properties).every(name => required.has(name))
  if (!isClosed && (schema.properties !== undefined || [type].flat().includes('object'))) return false
  const inner = [properties, $defs, definitions].flatMap(schemas => Object.values(objectIn(schemas)))
  for (const other of listIn(anyOf)) inner.push(other)
  return inner.every(isStrict) && (items === undefined || isStrict(items))
}

const isTier = (tier: string | null | undefined): tier is NonNullable<ChatRequest['service_tier']> =>
  tier === 'auto' || tier === 'default' || tier === 'flex' || tier === 'priority'

function systemOf(system: MessagesRequest['system']): Message[] {
  const parts = partsOf(system ?? [], 'system')
  return parts.length === 0 ? [] : [{ role: 'system', content: compact(parts) }]
}

/**
 * A budget stays a budget, an effort an effort; thinking without either becomes effort `high`. No model is excluded: Claude
 * Code asks models that it has no list of to think.
 */
function reasoningOf(request: MessagesRequest): Partial<ChatRequest> {
  const asked = thinkingOf(request)
  return asked ? Object.assign(asked, { lenient_reasoning: true as const }) : {}
}

function thinkingOf({ thinking, output_config: output }: MessagesRequest): Partial<ChatRequest> | undefined {
  const effort = output?.effort ?? undefined
  const budget = thinking?.budget_tokens
  switch (thinking?.type) {
    case 'disabled':
      return { reasoning_effort: 'none' }
    case 'enabled':
      if (budget != null) return { reasoning: { max_tokens: budget, ...(effort && { effort }) } }
      return { reasoning: { effort: effort ?? 'high' } }
    case 'adaptive':
      return { reasoning: { effort: effort ?? 'high' } }
    default:
      return effort ? { reasoning: { effort } } : undefined
  }
}

/** Whether the client expects a thinking block; otherwise it reads the first block as text. */
export const asksThinking = ({ thinking }: MessagesRequest): boolean => thinking != null && thinking.type !== 'disabled'

function toolsOf(
  { tools: given, tool_choice: choice }: MessagesRequest,
  placed: readonly Placed[],
): Partial<ChatRequest> {
  const searches = given?.some(isToolSearch) === true
  const declared = (given ?? []).flatMap(tool => toolOf(tool, searches) ?? [])
  const defined = placed.slice(given?.length ?? 0).map(({ tool }) => tool)
  const tools = withSearches(declared, defined.filter(isWebSearch).map(webSearchOf))
  if (tools.length === 0) return {}
  const made: Partial<ChatRequest> = { tools: [...tools] }
  const named = choice?.type === 'tool' ? choice.name : undefined
  if (choice?.type === 'auto' || choice?.type === 'none') made.tool_choice = choice.type
  else if (choice?.type === 'any') made.tool_choice = 'required'
  else if (tools.some(tool => tool.type === 'function' && tool.function.name === named)) {
    made.tool_choice = { type: 'function', function: { name: named! } }
  } else if (placed.some(({ tool }) => tool.name === named && isWebSearch(tool)))
    made.tool_choice = { type: 'web_search' }
  if (choice?.disable_parallel_tool_use) made.parallel_tool_calls = false
  return made
}

/** With the searches that turns define, which have a price: all searches as one, with the limits of all. */
function withSearches(tools: readonly Tool[], defined: readonly WebSearch[]): readonly Tool[] {
  if (defined.length === 0) return tools
  const isSearch = (tool: Tool): tool is WebSearch => tool.type === 'web_search'
  const all = [...tools.filter(isSearch), ...defined]
  const { max_uses: _, ...search } = all[0]!
  const uses = all.reduce((sum, { max_uses: most = Number.NaN }) => sum + most, 0)
  return [...tools.filter(tool => !isSearch(tool)), Number.isNaN(uses) ? search : { ...search, max_uses: uses }]
}

const isToolSearch = ({ type }: MessagesTool): boolean => type?.startsWith('tool_search_tool') === true
const isWebSearch = ({ type }: MessagesTool): boolean => type?.startsWith('web_search') === true

/** Undefined for a provider tool without a chat form. */
function toolOf(tool: MessagesTool, searches: boolean): Tool | undefined {
  const { type, name, description, input_schema: parameters, strict, defer_loading: deferred } = tool
  const mark = markOf(tool.cache_control)
  if (type == null || type === 'custom') {
    return {
      type: 'function',
      function: {
        name: name!,
        ...(description && { description }),
        ...(parameters && { parameters }),
        ...(strict != null && { strict: strict && parameters?.type === 'object' && isStrict(parameters) }),
      },
      // Without the provider's tool search, the client loads deferred tools itself.
      ...(deferred && searches && { defer_loading: true }),
      ...(mark && { cache_control: mark }),
    }
  }
  if (isToolSearch(tool)) return { type: 'tool_search', tool_search_type: type, ...(name && { name }) }
  return isWebSearch(tool) ? webSearchOf(tool) : undefined
}

function webSearchOf({ max_uses, allowed_domains, blocked_domains, user_location: place }: MessagesTool): WebSearch {
  const { city, region, country, timezone } = place ?? {}
  return {
    type: 'web_search',
    ...(max_uses != null && { max_uses }),
    ...(allowed_domains && { allowed_domains }),
    ...(blocked_domains && { blocked_domains }),
    ...(place && {
      user_location: {
        ...(city && { city }),
        ...(region && { region }),
        ...(country && { country }),
        ...(timezone && { timezone }),
      },
    }),
  }
}

/** Agents write JSON with a `session_id` into the user id: that becomes the session. */
function callerOf({ metadata }: MessagesRequest): Partial<ChatRequest> {
  const user = metadata?.user_id
  if (!user) return {}
  const session = sessionOf(user)
  return session === undefined ? { user } : { user, prompt_cache_key: session }
}

/** Longer values are not such JSON. */
const MAX_USER_CHARACTERS = 4096

function sessionOf(user: string): string | undefined {
  if (!user.startsWith('{') || user.length > MAX_USER_CHARACTERS) return undefined
  return textIn(objectIn(jsonIn(user)).session_id)
}

/**
 * Throws a 400 for a body with a thread before any other check: a continued thread has no history in its `messages`.
 * These details make the wire's official clients send the whole history.
 */
function refuseThread(body: unknown): void {
  if (!isObject(body) || body.thread == null) return
  throw errors
    .unsupported(
      'thread: conversations are not stored here. Send the whole history in "messages", without "thread".',
      'thread',
      'thread_unsupported_request',
    )
    .with({ details: { error_code: 'thread_unsupported_request', unsupported: ['message_threads'] } })
}
