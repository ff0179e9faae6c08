/** Tools of a generateContent body, and which of them the model may or must use. */

import type { ChatRequest, Tool } from '../../core/chat-request.ts'
import { errors } from '../../core/error.ts'
import { isObject, type Json } from '../../core/json.ts'
import { textKey } from '../../core/text-key.ts'
import { jsonSchemaOf } from './json-schema.ts'
import type { GenerateRequest } from './schema.ts'

type GivenTool = NonNullable<GenerateRequest['tools']>[number]
type Declaration = NonNullable<GivenTool['functionDeclarations']>[number]

/** Names of the provider's search tool. */
export const SEARCHES: ReadonlySet<string> = new Set(['googleSearch', 'googleSearchRetrieval'])

/** Without tools that only providers of this wire run. */
export function toolsOf({ tools: given, toolConfig }: GenerateRequest): Pick<ChatRequest, 'tools' | 'tool_choice'> {
  const tools: Tool[] = []
  let searches = false
  for (const tool of given ?? []) {
    if (Object.keys(tool).some(name => SEARCHES.has(name) && isObject((tool as Json)[name]))) searches = true
    for (const declaration of tool.functionDeclarations ?? []) tools.push(toolOf(declaration))
  }
  const chosen = choiceOf(tools, toolConfig?.functionCallingConfig)
  if (searches) chosen.tools.push({ type: 'web_search' })
  if (chosen.tools.length === 0) return {}
  return chosen.choice === undefined || tools.length === 0
    ? { tools: chosen.tools }
    : { tools: chosen.tools, tool_choice: chosen.choice }
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
    throw errors.invalidParameters(`${at}: must name a declared function, got "${name.slice(0, 100)}"`, at)
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
