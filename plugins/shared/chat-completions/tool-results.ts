/**
 * A chat history with each tool result beside its call, for wires that require pairs (docs/contributing/edge-cases.md#requests R3).
 */
import { type FunctionCall, functionCalls, type Message, PendingToolCalls } from '../../../src/plugin.ts'

/** A call and its result. */
export interface Answered {
  readonly call: FunctionCall
  /** Position among calls of its message with the same id; 0 for the first. */
  copy: number
  /** Unset for a call without a result. */
  result: Message | undefined
  /** The path of `result`, for errors. */
  at: string
}

/** A message other than a tool result. */
export interface PairedMessage {
  readonly message: Message
  /** Its path, for errors. */
  readonly at: string
  /** An assistant's calls, in order. */
  readonly calls: readonly Answered[]
}

/** Text for the result of a call without one. */
export const NO_RESULT = 'No result'

/**
 * Results belong to the latest call of their id, wherever they are; of two results for one call the later counts.
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
