/** Tools and the tool choice. */
import { type ChatRequest, isObject, type Json, type Mapping, type Tool } from '../../src/plugin.ts'
import { shortName } from '../shared/tool-name.ts'
import { toolSchema } from '../shared/tool-schema.ts'

interface ToolSettings {
  tools?: Json[]
  tool_choice?: string | Json
  parallel_tool_calls?: boolean
}

type FunctionTool = Extract<Tool, { type: 'function' }>
type WebSearch = Extract<Tool, { type: 'web_search' }>

const WEB_SEARCH = 'web_search'

/** `tools` in the caller's order, so that a cached prefix stays valid. Omits tools that the mapping lacks. */
export function toolsOf(request: Readonly<ChatRequest>, { supports }: Mapping): ToolSettings {
  const given = request.tools ?? []
  const canDefer = supports.has('tool_search') && given.some(tool => tool.type === 'tool_search')
  const tools: Json[] = []
  let searches = false
  for (const tool of given) {
    if (tool.type === 'function') tools.push(functionTool(tool, canDefer))
    else if (tool.type === 'tool_search') {
      if (canDefer) tools.push({ type: 'tool_search' })
    } else if (tool.type === 'custom') tools.push(customTool(tool))
    else if (supports.has('web_search')) {
      tools.push(webSearchTool(tool))
      searches = true
    }
  }
  if (request.web_search && !searches && supports.has('web_search')) {
    tools.push({ type: WEB_SEARCH })
    searches = true
  }
  if (tools.length === 0) return {}
  const choice = choiceOf(request.tool_choice, searches)
  const { parallel_tool_calls: parallel } = request
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(parallel != null && { parallel_tool_calls: parallel }),
  }
}

/** The wire's longest name of a tool. */
export const MAX_NAME_CHARACTERS = 128

/** The wire defaults to strict, which rejects most schemas: `strict` is always sent explicitly. */
function functionTool({ function: called, defer_loading: deferred }: FunctionTool, canDefer: boolean): Json {
  const { name, description, parameters, strict } = called
  return {
    type: 'function',
    name: shortName(name, MAX_NAME_CHARACTERS),
    ...(description !== undefined && { description }),
    parameters: toolSchema(parameters),
    strict: strict === true,
    ...(deferred && canDefer && { defer_loading: true }),
  }
}

/** The format is flat here: a grammar's definition beside its type. */
function customTool({ custom }: Extract<Tool, { type: 'custom' }>): Json {
  const { name, description, format }: { name: string; description?: string | undefined; format?: Json | undefined } =
    custom
  return {
    type: 'custom',
    name: shortName(name, MAX_NAME_CHARACTERS),
    ...(description !== undefined && { description }),
    ...(format !== undefined && {
      format: isObject(format.grammar) ? { type: format.type, ...format.grammar } : format,
    }),
  }
}

/** The wire has neither blocked domains nor a limit of uses. */
function webSearchTool({ search_context_size: size, user_location: place, allowed_domains: domains }: WebSearch): Json {
  const { city, region, country, timezone } = place ?? {}
  const known = Object.entries({ city, region, country, timezone }).filter(([, value]) => value !== undefined)
  return {
    type: WEB_SEARCH,
    ...(size !== undefined && { search_context_size: size }),
    ...(known.length > 0 && { user_location: { type: 'approximate', ...Object.fromEntries(known) } }),
    ...(domains?.length && { filters: { allowed_domains: domains } }),
  }
}

function choiceOf(choice: ChatRequest['tool_choice'], searches: boolean): string | Json | undefined {
  if (choice == null || typeof choice === 'string') return choice ?? undefined
  if (choice.type === 'function')
    return { type: 'function', name: shortName(choice.function.name, MAX_NAME_CHARACTERS) }
  if (choice.type === 'custom') return { type: 'custom', name: shortName(choice.custom.name, MAX_NAME_CHARACTERS) }
  return searches ? { type: WEB_SEARCH } : undefined
}
