/** Function tools and the tool choice. */
import { type ChatRequest, errors, type Json, type Tool } from '../../src/plugin.ts'
import { toWireName } from '../shared/tool-name.ts'

/** The wire's limit for names of tools, calls and results. */
const MAX_NAME = 64
const NO_PARAMETERS = { type: 'object', properties: {} }

/** A tool name in the wire's alphabet; `fromWireName` decodes it. Throws 400 for a name that is too long. */
export function wireName(name: string, at: string): string {
  // The shared escaping would report its own limit for longer names.
  const spelt = name.length <= MAX_NAME ? toWireName(name) : name
  if (spelt.length <= MAX_NAME) return spelt
  const rule = `must be at most ${MAX_NAME} letters, digits, "_" or "-"`
  throw errors.invalidField(at, `${rule}, got "${name.slice(0, 100)}"`)
}

/** `tools`, `tool_choice` and `parallel_tool_calls`; none of them without function tools. */
export function toolsOf(request: Readonly<ChatRequest>): Json {
  const tools: Json[] = []
  request.tools?.forEach((tool, i) => {
    if (tool.type === 'function') tools.push({ type: 'function', function: functionOf(tool, i) })
  })
  if (tools.length === 0) return {}
  const choice = choiceOf(request.tool_choice)
  const parallel = request.parallel_tool_calls
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(parallel == null ? {} : { parallel_tool_calls: parallel }),
  }
}

function functionOf({ function: tool }: Extract<Tool, { type: 'function' }>, i: number): Json {
  const { name, description, parameters, strict } = tool
  return {
    name: wireName(name, `tools[${i}].function.name`),
    ...(description === undefined ? {} : { description }),
    parameters: parameters && Object.keys(parameters).length > 0 ? parameters : NO_PARAMETERS,
    ...(typeof strict === 'boolean' && { strict }),
  }
}

function choiceOf(choice: ChatRequest['tool_choice']): unknown {
  if (choice === 'required') return 'any'
  if (choice == null || typeof choice === 'string') return choice ?? undefined
  if (choice.type !== 'function') return undefined
  return { type: 'function', function: { name: wireName(choice.function.name, 'tool_choice.function.name') } }
}
