/** The legacy form of calls: `functions`, `function_call` and the role `function`. */

import type { ChatBody, ChatRequest, Message, Tool } from '../core/chat-request.ts'
import type { ToolEvent } from '../core/event.ts'
import { isObject } from '../json/json.ts'
import { textKey } from '../json/text-key.ts'
import type { Choice } from '../wire/fold.ts'

type Called = NonNullable<Message['function_call']>

/** The functions as tools, and the choice among them; undefined without well-formed ones. */
export function toolsOfFunctions({
  functions,
  function_call: choice,
}: ChatBody): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls' | 'functions'> | undefined {
  if (!Array.isArray(functions) || functions.length === 0 || !functions.every(isFunction)) return undefined
  const tools = functions.map(({ name, description, parameters }): Tool => {
    const called = { name, ...(description && { description }), ...(parameters && { parameters }) }
    return { type: 'function', function: called }
  })
  // An answer in this form contains one call.
  const request = { tools, parallel_tool_calls: false, functions }
  if (choice === 'auto' || choice === 'none') return { ...request, tool_choice: choice }
  const named = isObject(choice) && typeof choice.name === 'string' && choice.name !== ''
  return named ? { ...request, tool_choice: { type: 'function', function: { name: choice.name } } } : request
}

function isFunction(value: unknown): boolean {
  if (!isObject(value)) return false
  const { name, description, parameters } = value
  if (typeof name !== 'string' || name === '') return false
  return (description == null || typeof description === 'string') && (parameters == null || isObject(parameters))
}

const isCalled = (value: unknown): value is Called =>
  isObject(value) && typeof value.name === 'string' && value.name !== '' && typeof value.arguments === 'string'

const calls = ({ role, function_call: called, tool_calls }: Message): boolean =>
  role === 'assistant' && called != null && !tool_calls?.length && isCalled(called)
const answers = ({ role, tool_call_id: id }: Message): boolean => role === 'function' && id === undefined

/**
 * Returns the same list when no message has the legacy form. Ids depend only on earlier messages, so that a prefix
 * keeps its bytes.
 */
export function messagesOfFunctions(messages: Message[]): Message[] {
  if (!messages.some(message => calls(message) || answers(message))) return messages
  /** Calls without a result, by function name. */
  const open = new Map<string, string[]>()
  let latest = ''
  return messages.map((message, i) => {
    if (calls(message)) {
      const { function_call: called, ...rest } = message
      const { name, arguments: args } = called!
      const id = `call_function_${i}`
      latest = name
      const key = textKey(name)
      const ids = open.get(key)
      if (ids) ids.push(id)
      else open.set(key, [id])
      return { ...rest, tool_calls: [{ id, type: 'function', function: { name, arguments: args } }] }
    }
    const id = answers(message) ? open.get(textKey(message.name ?? latest))?.pop() : undefined
    if (id === undefined) return message
    const { name: _, ...rest } = message
    return { ...rest, role: 'tool', tool_call_id: id }
  })
}

/** Whether the answer must have the legacy form. */
export const wantsFunctionCall = ({ functions }: ChatRequest): boolean => functions !== undefined

/** The member of a delta, without braces; empty for calls after the first. */
export function functionCallDelta({ index, name, args = '' }: ToolEvent): string {
  if (index > 0) return ''
  return `"function_call":${JSON.stringify(name === undefined ? { arguments: args } : { name, arguments: args })}`
}

/** The only call of a whole answer; undefined without one. */
export function functionCallOf([call]: Choice['tools']): Called | undefined {
  return call && { name: call.name, arguments: call.args === '' ? '{}' : call.args }
}
