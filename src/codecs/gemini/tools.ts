/** Tools of a generateContent body, and which of them the model may or must use. */

import type { ChatRequest, Tool } from '../../core/chat-request.ts'
import { isObject, type Json, listIn, objectIn } from '../../json/json.ts'
import { textKey } from '../../json/text-key.ts'
import { errors } from '../../lib/error.ts'
import { jsonSchemaOf } from './json-schema.ts'
import type { GenerateRequest } from './schema.ts'

type GivenTool = NonNullable<GenerateRequest['tools']>[number]
type WebSearch = Extract<Tool, { type: 'web_search' }>
type Declaration = NonNullable<GivenTool['functionDeclarations']>[number]

/** The member with functions of the client. */
export const FUNCTIONS = 'functionDeclarations'
/** Names of the provider's search tool. */
const SEARCHES: ReadonlySet<string> = new Set(['googleSearch', 'googleSearchRetrieval'])

/** Options of a search that other wires have, too. */
const EXCLUDED = 'excludeDomains'

/**
 * Path of the first tool that only providers of this wire run, or of an option of a search that no other wire has.
 * `body` has passed the endpoint's schema.
 */
export function ownTool({ tools, toolConfig }: Readonly<Json>): string | undefined {
  for (const [i, tool] of listIn(tools).entries()) {
    for (const [name, options] of Object.entries(objectIn(tool))) {
      if (name === FUNCTIONS || !isObject(options)) continue
      const at = `tools[${i}].${name}`
      if (!SEARCHES.has(name)) return at
      const option = Object.keys(options).find(option => option !== EXCLUDED && options[option] != null)
      if (option !== undefined) return `${at}.${option}`
    }
  }
  return isObject(toolConfig) && toolConfig.retrievalConfig != null ? 'toolConfig.retrievalConfig' : undefined
}

/** Without tools that only providers of this wire run. */
export function toolsOf({ tools: given, toolConfig }: GenerateRequest): Pick<ChatRequest, 'tools' | 'tool_choice'> {
  const tools: Tool[] = []
  let search: WebSearch | undefined
  for (const tool of given ?? []) {
    for (const [name, options] of Object.entries(tool as Json)) {
      if (SEARCHES.has(name) && isObject(options)) search = searchOf(options)
    }
    for (const declaration of tool.functionDeclarations ?? []) tools.push(toolOf(declaration))
  }
  const chosen = choiceOf(tools, toolConfig?.functionCallingConfig)
  if (search) chosen.tools.push(search)
  if (chosen.tools.length === 0) return {}
  return chosen.choice === undefined || tools.length === 0
    ? { tools: chosen.tools }
    : { tools: chosen.tools, tool_choice: chosen.choice }
}

function searchOf({ [EXCLUDED]: excluded }: Json): WebSearch {
  const domains = listIn(excluded).filter(domain => typeof domain === 'string')
  return domains.length > 0 ? { type: 'web_search', blocked_domains: domains } : { type: 'web_search' }
}

function toolOf({ name, description, parameters, parametersJsonSchema: schema }: Declaration): Tool {
  const shape = schema ?? (parameters ? jsonSchemaOf(parameters as Json) : undefined)
  return {
    type: 'function',
    function: { name, ...(description && { description }), ...(shape && { parameters: shape }) },
  }
}

type Config = NonNullable<NonNullable<GenerateRequest['toolConfig']>['functionCallingConfig']>

/** When several names are forced or allowed, only those tools remain. */
function choiceOf(
  tools: Tool[],
  config: Config | null | undefined,
): { tools: Tool[]; choice?: ChatRequest['tool_choice'] } {
  const names = config?.allowedFunctionNames ?? []
  const offered = new Set(tools.map(tool => (tool.type === 'function' ? textKey(tool.function.name) : '')))
  for (const [i, name] of names.entries()) {
    if (offered.has(textKey(name))) continue
    const at = `toolConfig.functionCallingConfig.allowedFunctionNames[${i}]`
    throw errors.invalidField(at, `must name a declared function, got "${name.slice(0, 100)}"`)
  }
  const allowed = new Set(names.map(textKey))
  const left =
    allowed.size === 0
      ? tools
      : tools.filter(tool => tool.type === 'function' && allowed.has(textKey(tool.function.name)))
  switch (config?.mode) {
    case 'NONE':
      return { tools, choice: 'none' }
    case 'ANY': {
      const [only, second] = names
      if (only === undefined || second !== undefined) return { tools: left, choice: 'required' }
      return { tools, choice: { type: 'function', function: { name: only } } }
    }
    case 'AUTO':
    case 'VALIDATED':
      return { tools: left, choice: 'auto' }
    default:
      return { tools: left }
  }
}
