/** Function tools and the choice among them. */
import { type ChatRequest, errors, type Json, type Tool } from '../../src/plugin.ts'
import { toWireName } from '../shared/tool-name.ts'
import { toolSchema } from '../shared/tool-schema.ts'

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
