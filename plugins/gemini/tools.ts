/** Tools, and which of them the model may or must use. */
import type { ChatRequest, Json, Mapping, Tool } from '../../src/plugin.ts'
import { toolSchema } from '../shared/tool-schema.ts'
import type { Surface } from './surface.ts'
import { takesLevels } from './thinking.ts'
import { toWireName } from './tool-name.ts'

interface ToolSettings {
  tools?: Json[]
  toolConfig?: Json
}

type FunctionTool = Extract<Tool, { type: 'function' }>

/**
 * Functions in the caller's order, so that a cached prefix stays valid, then web search. Older models accept one of the
 * two: functions, unless a search is forced. A choice without functions has no form here.
 */
export function toolsOf(request: Readonly<ChatRequest>, mapping: Mapping, surface: Surface): ToolSettings {
  const choice = request.tool_choice
  let functions = (request.tools ?? []).filter((tool): tool is FunctionTool => tool.type === 'function')
  let search = mapping.supports.has('web_search') ? searchOf(request, surface) : undefined
  if (functions.length > 0 && search && !takesLevels(mapping)) {
    if (typeof choice === 'object' && choice?.type === 'web_search') functions = []
    else search = undefined
  }
  const tools: Json[] = []
  if (functions.length > 0) tools.push({ functionDeclarations: functions.map(declaration) })
  if (search) tools.push({ googleSearch: search })
  if (tools.length === 0) return {}
  if (functions.length === 0) return { tools }

  const strict = functions.some(tool => tool.function.strict === true)
  const calling = callingConfig(choice, strict || search !== undefined)
  const toolConfig = {
    ...(calling && { functionCallingConfig: calling }),
    ...(search && surface.searchBesideFunctions),
  }
  return { tools, ...(Object.keys(toolConfig).length > 0 && { toolConfig }) }
}

function declaration({ function: { name, description, parameters } }: FunctionTool): Json {
  return {
    name: toWireName(name),
    ...(description && { description }),
    parametersJsonSchema: toolSchema(parameters),
  }
}

const searchTool = ({ tools }: Readonly<ChatRequest>) => tools?.find(tool => tool.type === 'web_search')

/** Whether the model may search the web. */
export const asksForSearch = (request: Readonly<ChatRequest>): boolean =>
  request.web_search === true || searchTool(request) !== undefined

/** Search options, if search is requested. */
function searchOf(request: Readonly<ChatRequest>, surface: Surface): Json | undefined {
  if (!asksForSearch(request)) return undefined
  const tool = searchTool(request)
  const blocked = tool?.blocked_domains ?? []
  return surface.excludesDomains && blocked.length > 0 ? { excludeDomains: blocked } : {}
}

/**
 * AUTO and VALIDATED allow text answers; VALIDATED enforces the schemas and is required for a search beside functions.
 * ANY forces a call and enforces its schema.
 */
function callingConfig(choice: ChatRequest['tool_choice'], validated: boolean): Json | undefined {
  if (choice === 'none') return { mode: 'NONE' }
  if (choice === 'required') return { mode: 'ANY' }
  if (typeof choice === 'object' && choice?.type === 'function') {
    return { mode: 'ANY', allowedFunctionNames: [toWireName(choice.function.name)] }
  }
  if (validated) return { mode: 'VALIDATED' }
  return choice === 'auto' ? { mode: 'AUTO' } : undefined
}
