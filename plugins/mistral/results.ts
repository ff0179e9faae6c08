/** A chat history with each tool result beside its call, for wires that want them in pairs (edge case R3). */
import { type Message, type ToolCall, unanswerable } from '../../src/plugin.ts'

/** A call and its answer. */
export interface Answered {
  readonly call: ToolCall
  /** Which one of the calls of its message that have the same id; 0 for the first. */
  readonly copy: number
  /** Unset for a call that nobody answered. */
  result: Message | undefined
  /** The path of `result`, for errors. */
  at: string
}

/** A message other than a tool result. */
export interface Step {
  readonly message: Message
  /** Its path, for errors. */
  readonly at: string
  /** An assistant's calls, in their order. */
  readonly calls: readonly Answered[]
}

/** What stands for the result of a call that nobody answered. */
export const NO_RESULT = 'No result'

/**
 * Results go to the latest call of their id, wherever they stand; of two results for one call the later counts.
 * Throws 400 for a result without a call.
 */
export function pairResults(messages: readonly Message[]): Step[] {
  const steps: Step[] = []
  const open = new Map<string, Answered[]>()
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    if (message.role === 'tool' || message.role === 'function') {
      const calls = open.get(message.tool_call_id ?? '')
      if (!calls) throw unanswerable(message, at)
      const call = calls.find(({ result }) => result === undefined) ?? calls.at(-1)!
      call.result = message
      call.at = at
      return
    }
    const own = new Map<string, Answered[]>()
    const calls = ((message.role === 'assistant' && message.tool_calls) || []).map(call => {
      const alike = own.get(call.id) ?? []
      const answered: Answered = { call, copy: alike.length, result: undefined, at }
      own.set(call.id, [...alike, answered])
      return answered
    })
    for (const [id, alike] of own) open.set(id, alike)
    steps.push({ message, at, calls })
  })
  return steps
}
