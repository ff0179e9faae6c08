/** Call options of the protocol as a chat request. */

import type { ChatRequest, Message } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import { isObject, type Json, listIn, objectIn, textIn } from '../../json/json.ts'
import { Count } from '../../json/shape.ts'
import { errors } from '../../lib/error.ts'
import { resultText } from '../../wire/results.ts'
import { hasAddress } from '../chat-rules.ts'
import { openAiChat } from '../openai-chat.ts'
import { noteCall, type ProtocolCall, type SearchTool } from './call.ts'
import { MODEL_HEADER } from './error.ts'
import { SAME } from './fields.ts'
import { cacheControlOf, chatFieldsOf, providersOf } from './options.ts'
import { messagesOf } from './prompt.ts'
import { isSearch, searchToolOf } from './search.ts'
import { versionOf } from './version.ts'

const UNSUPPORTED = ['stopSequences', 'seed', 'topK'] as const
const MAX_QUERY_CHARACTERS = 400
/** Warnings of one answer; further ones are left out. */
const MAX_WARNINGS = 100

/** Throws the 400 that names what is wrong. Notes on `ex` what its answer needs. */
export function decode(body: unknown, ex: Exchange): ChatRequest {
  const version = versionOf(ex)
  const model = ex.header(MODEL_HEADER)
  if (!model) throw errors.invalidParameters(`The model is named by the header "${MODEL_HEADER}".`, MODEL_HEADER)
  if (!isObject(body)) throw errors.invalidParameters('The request body must be a JSON object.')
  const warnings: Json[] = []
  const warn = (warning: Json) => void (warnings.length < MAX_WARNINGS && warnings.push(warning))
  for (const name of UNSUPPORTED) if (body[name] != null) warn(version.unsupported(name))
  const stream = ex.header('ai-language-model-streaming') === 'true'
  const count = new Count(ex.input.values)
  const { messages, origins } = messagesOf(body.prompt, count, message => warn({ type: 'other', message }))
  const chat: Json = { model, messages, stream }
  for (const [name, field] of Object.entries(SAME)) if (body[name] != null) chat[field] = body[name]
  const format = formatOf(body.responseFormat)
  if (format) chat.response_format = format
  const tools = toolsOf(body, messages)
  for (const tool of tools.unmapped.slice(0, MAX_WARNINGS)) warn(version.unsupportedTool(tool))
  if (tools.tools.length > 0) {
    chat.tools = tools.tools
    if (tools.choice !== undefined) chat.tool_choice = tools.choice
  }
  const own = chatFieldsOf(body)
  const { reasoning } = body
  if (typeof reasoning === 'string' && reasoning !== 'provider-default' && own.reasoning == null) {
    chat.reasoning_effort = reasoning
  }
  Object.assign(chat, own)
  const call: ProtocolCall = {
    version,
    warnings,
    own: new Set(Object.keys(own)),
    origins,
    places: tools.places,
    search: tools.isHidden ? undefined : tools.search,
    mustSearch: tools.mustSearch,
    hidesSearch: tools.isHidden && tools.search !== undefined,
    raw: stream && body.includeRawChunks === true,
    addressed: messages.some(hasAddress) ? { prompt: body.prompt, messages } : undefined,
  }
  noteCall(ex, call)
  const request = ex.decoded(chat, openAiChat)
  const provider_options = providersOf(body)
  return provider_options ? { ...request, provider_options } : request
}

function formatOf(format: unknown): Json | undefined {
  if (!isObject(format) || format.type !== 'json') return undefined
  const { schema, name, description } = format
  if (!isObject(schema)) return { type: 'json_object' }
  const json_schema: Json = { name: textIn(name) || 'response', schema }
  if (typeof description === 'string') json_schema.description = description
  return { type: 'json_schema', json_schema }
}

interface Tools {
  readonly tools: Json[]
  /** The index of each in the call. */
  readonly places: readonly number[]
  readonly choice: unknown
  /** Provider tools without an equivalent here. */
  readonly unmapped: readonly Json[]
  readonly search: SearchTool | undefined
  /** The caller chose to use no tool. */
  readonly isHidden: boolean
  readonly mustSearch: boolean
}

function toolsOf({ tools: given, toolChoice }: Json, messages: readonly Message[]): Tools {
  const choice: Json = objectIn(toolChoice)
  const isHidden = choice.type === 'none'
  const tools: Json[] = []
  const places: number[] = []
  const unmapped: Json[] = []
  let search: SearchTool | undefined
  for (const [i, tool] of listIn(given).entries()) {
    if (!isObject(tool)) throw errors.invalidField(`tools[${i}]`, 'must be an object')
    if (tool.type === 'function') {
      tools.push(functionOf(tool))
      places.push(i)
    } else if (!isSearch(tool.id)) unmapped.push(tool)
    else if (!search) {
      search = { id: tool.id, name: textIn(tool.name) || 'web_search', query: queryOf(messages) }
      if (isHidden) continue
      tools.push(searchToolOf(objectIn(tool.args)))
      places.push(i)
    }
  }
  const named = choice.type === 'tool' ? textIn(choice.toolName) : undefined
  const isNamed = named !== undefined && named === search?.name
  const isAlone = tools.length === 1 && search !== undefined && !isHidden
  const isForced = isNamed || (isAlone && choice.type === 'required')
  // A choice of a tool that was left out with a warning is dropped.
  const isLost = named !== undefined && !isNamed && unmapped.some(({ name }) => name === named)
  return {
    tools,
    places,
    unmapped,
    search,
    isHidden,
    mustSearch: isForced,
    choice: isForced ? { type: 'web_search' } : isLost ? undefined : choiceOf(choice, named),
  }
}

function choiceOf({ type }: Json, named: string | undefined): unknown {
  if (named !== undefined) return { type: 'function', function: { name: named } }
  return type === 'auto' || type === 'none' || type === 'required' ? type : undefined
}

function functionOf(tool: Json): Json {
  const called: Json = { name: tool.name }
  if (typeof tool.description === 'string') called.description = tool.description
  if (isObject(tool.inputSchema)) called.parameters = tool.inputSchema
  if (typeof tool.strict === 'boolean') called.strict = tool.strict
  const control = cacheControlOf(tool)
  return control
    ? { type: 'function', function: called, cache_control: control }
    : { type: 'function', function: called }
}

/** The last message of the user, as text. */
function queryOf(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === 'user')
  return last ? resultText(last.content).trim().slice(0, MAX_QUERY_CHARACTERS) : ''
}
