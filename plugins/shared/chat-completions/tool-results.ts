/** A chat history with each tool result beside its call, for wires that want them in pairs (edge case R3). */
import { type FunctionCall, functionCalls, type Message, PendingToolCalls } from '../../../src/plugin.ts'

/** A call and its answer. */
export interface Answered {
  readonly call: FunctionCall
  /** Which one of the calls of its message that have the same id; 0 for the first. */
  copy: number
  /** Unset for a call that nobody answered. */
  result: Message | undefined
  /** The path of `result`, for errors. */
  at: string
}

/** A message other than a tool result. */
export interface PairedMessage {
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
export function pairResults(messages: readonly Message[]): PairedMessage[] {
  const steps: PairedMessage[] = []
  const open = new PendingToolCalls<Answered>(({ result }) => result !== undefined)
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    if (message.role === 'tool' || message.role === 'function') {
      const call = open.answeredBy(message, at)
      call.result = message
      call.at = at
      return
    }
    const calls: Answered[] = []
    for (const call of message.role === 'assistant' ? functionCalls(message, at) : []) {
      const answered: Answered = { call, copy: 0, result: undefined, at }
      answered.copy = open.add(call.id, answered, calls)
      calls.push(answered)
    }
    steps.push({ message, at, calls })
  })
  return steps
}
