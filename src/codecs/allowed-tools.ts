/** A choice among some tools: `tool_choice` of type `allowed_tools`. */

import type { ChatBody, ChatRequest, Tool } from '../core/chat-request.ts'
import { textKey } from '../json/text-key.ts'
import { errors } from '../lib/error.ts'

type Choice = NonNullable<ChatBody['tool_choice']>
type AllowedTools = Extract<Choice, { type: 'allowed_tools' }>
type Named = AllowedTools['allowed_tools']['tools'][number]

/** Whether a choice names the tools that it allows. */
export const isAllowedTools = (choice: ChatBody['tool_choice']): choice is AllowedTools =>
  typeof choice === 'object' && choice?.type === 'allowed_tools'

/** The allowed tools in order, and the choice among them. Throws a 400 for an unknown name. */
export function allowedTools(
  tools: readonly Tool[],
  { allowed_tools: { mode, tools: allowed } }: AllowedTools,
): Pick<ChatRequest, 'tools' | 'tool_choice'> {
  const offered = new Set(tools.map(keyOfTool))
  const wanted = new Set<string>()
  for (const [i, entry] of allowed.entries()) {
    const key = keyOfName(entry)
    if (!offered.has(key)) throw unknown(entry, `tool_choice.allowed_tools.tools[${i}]`)
    wanted.add(key)
  }
  // Tool search finds only the allowed tools, and cannot be chosen itself.
  const left = tools.filter(tool => wanted.has(keyOfTool(tool)) || tool.type === 'tool_search')
  return { tools: left, tool_choice: mode }
}

function keyOfTool(tool: Tool): string {
  if (tool.type === 'function') return textKey(`function ${tool.function.name}`)
  return tool.type === 'custom' ? textKey(`custom ${tool.custom.name}`) : tool.type
}

/** Also in the form of the Responses API, whose names are flat. */
const nameOf = ({ type, name, function: called, custom }: Named): string | undefined =>
  (type === 'custom' ? custom : called)?.name ?? name

function keyOfName(entry: Named): string {
  const name = entry.type === 'function' || entry.type === 'custom' ? nameOf(entry) : undefined
  return textKey(name === undefined ? entry.type : `${entry.type} ${name}`)
}

function unknown(entry: Named, at: string) {
  const name = nameOf(entry)
  const given = name === undefined ? `one of type "${entry.type.slice(0, 100)}"` : `"${name.slice(0, 100)}"`
  return errors.invalidField(at, `must name one of the tools, got ${given}`)
}
