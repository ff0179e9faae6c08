/** Tools and the tool choice; a structured answer may take the form of a forced tool. */
import { type ChatRequest, errors, type Json, type Target, type Tool } from '../../src/plugin.ts'
import { nonObjectSchema } from '../shared/any-json.ts'
import { wireSchemaOf } from '../shared/claude/property-names.ts'
import { fitsStructuredOutputs, strictSchema } from '../shared/claude/schema.ts'
import { JSON_TOOL, toWireName } from '../shared/tool-name.ts'
import { toolSchema } from '../shared/tool-schema.ts'

const WEB_SEARCH = 'web_search'

interface ToolSettings {
  tools?: Json[]
  tool_choice?: Json
}

/** JSON Schema of the answer, if any. */
export const answerSchema = (request: Readonly<ChatRequest>): Json | undefined => {
  const format = request.response_format
  return format?.type === 'json_schema' ? format.json_schema.schema : undefined
}

/** The schema of an answer for which the request offers a tool whose input it is. */
export const schemaByTool = (request: Readonly<ChatRequest> | undefined, { mapping }: Target): Json | undefined =>
  request && !mapping.supports.has('structured_outputs') && !nonObjectSchema(request)
    ? answerSchema(request)
    : undefined

/**
 * `tools` in the caller's order, so that a cached prefix stays valid, and `tool_choice`. Omits tools that the mapping
 * lacks.
 */
export function toolsOf(request: Readonly<ChatRequest>, target: Target): ToolSettings {
  const { supports } = target.mapping
  const given = request.tools ?? []
  const canDefer = supports.has('tool_search') && given.some(tool => tool.type === 'tool_search')
  const strict = supports.has('structured_outputs')
  const tools: Json[] = []
  let searches = false
  for (const tool of given) {
    if (tool.type === 'function') tools.push(functionTool(tool, strict, canDefer))
    else if (tool.type === 'tool_search') {
      const { tool_search_type: type, name } = tool
      if (canDefer) tools.push({ type, name: name ?? type.replace(/_\d{8}$/, '') })
    } else if (tool.type === 'web_search' && supports.has('web_search')) {
      tools.push(webSearchTool(tool))
      searches = true
    }
  }
  if (request.web_search && !searches && supports.has('web_search')) {
    tools.push(webSearchTool({ type: 'web_search' }))
    searches = true
  }
  const schema = schemaByTool(request, target)
  const others = tools.length
  if (schema) tools.push(answerTool(schema))
  if (tools.length === 0) return {}

  let choice = schema ? answerChoice(request, others > 0) : choiceOf(request.tool_choice, searches)
  const single = request.parallel_tool_calls === false || schema !== undefined
  if (single && choice?.type !== 'none') choice = { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
  return choice ? { tools, tool_choice: choice } : { tools }
}

/** Whether a `tool_choice` forces a tool call; that excludes thinking. */
export const isForced = (choice: Json | undefined): boolean => choice?.type === 'any' || choice?.type === 'tool'

function functionTool(tool: Extract<Tool, { type: 'function' }>, canBeStrict: boolean, canDefer: boolean): Json {
  const { name, description, parameters, strict } = tool.function
  const { schema } = wireSchemaOf(parameters)
  const isStrict = strict === true && canBeStrict && fitsStructuredOutputs(schema, true)
  return {
    name: toWireName(name),
    ...(description && { description }),
    input_schema: isStrict ? strictSchema(schema) : schema,
    ...(isStrict && { strict: true }),
    ...(tool.defer_loading && canDefer && { defer_loading: true }),
    ...(tool.cache_control && { cache_control: tool.cache_control }),
  }
}

type WebSearch = Extract<Tool, { type: 'web_search' }>
type Place = NonNullable<WebSearch['user_location']>

/** The wire allows either allowed or blocked domains; the allowed ones take precedence. */
function webSearchTool(tool: WebSearch): Json {
  const { max_uses: uses, allowed_domains: allowed, blocked_domains: blocked, user_location: place } = tool
  return {
    type: 'web_search_20250305',
    name: WEB_SEARCH,
    ...(uses !== undefined && { max_uses: uses }),
    ...(allowed?.length ? { allowed_domains: allowed } : blocked?.length ? { blocked_domains: blocked } : {}),
    ...(place && { user_location: approximate(place) }),
  }
}

const approximate = ({ city, region, country, timezone }: Place): Json => ({
  type: 'approximate',
  ...(city && { city }),
  ...(region && { region }),
  ...(country && { country }),
  ...(timezone && { timezone }),
})

/** The tool whose input is an answer by `schema`. */
export function answerTool(schema: Json): Json {
  const { type = 'object' } = schema
  if (type !== 'object') {
    throw errors.unsupported('The schema of an answer must be of type "object".', 'response_format.json_schema.schema')
  }
  return {
    name: JSON_TOOL,
    description: 'Gives the final answer. The answer must be given by calling this tool, never as text.',
    input_schema: toolSchema(schema),
  }
}

function choiceOf(choice: ChatRequest['tool_choice'], searches: boolean): Json | undefined {
  if (choice == null) return undefined
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  if (choice.type === 'function') return { type: 'tool', name: toWireName(choice.function.name) }
  return searches ? { type: 'tool', name: WEB_SEARCH } : undefined
}

/** The answer arrives by tool, so a tool must be called: the caller's while allowed, else the answer. */
export function answerChoice({ tool_choice: choice }: Readonly<ChatRequest>, hasOthers: boolean): Json {
  if (typeof choice === 'object' && choice?.type === 'function') return choiceOf(choice, false)!
  return hasOthers && choice !== 'none' ? { type: 'any' } : { type: 'tool', name: JSON_TOOL }
}
