/** A chat history on Cohere's wire. */
import {
  type Json,
  type Message,
  resultWithErrorText,
  shownFor,
  type Target,
  toolArguments,
  wellFormed,
} from '../../src/plugin.ts'
import { plainText } from '../shared/chat-completions/parts.ts'
import { replayThinking } from '../shared/chat-completions/thinking.ts'
import { type Answered, NO_RESULT, type PairedMessage, pairResults } from '../shared/chat-completions/tool-results.ts'
import { toWireName } from '../shared/tool-name.ts'
import { resultContent, userContent } from './parts.ts'

/** Placeholder for a required user message, and after an answer to be continued. */
const SILENCE = '.'
const GO_ON = 'Continue.'

interface Options {
  /** Whether files go to `documents`, where the model can cite them, or into the text. */
  readonly documents: boolean
  /** Whether the model may think, and therefore accepts earlier thinking. */
  readonly thinking: boolean
}

/** Throws 400 for content that the wire cannot carry, and for results without a call. */
export function historyOf(
  messages: readonly Message[],
  target: Target,
  options: Options,
): { messages: Json[]; documents: Json[] } {
  const turns: Json[] = []
  const documents: Json[] = []
  for (const step of pairResults(messages)) {
    const { message, at, calls } = step
    switch (message.role) {
      case 'system':
      case 'developer': {
        const content = plainText(message.content, at, message.role)
        if (content !== '') turns.push({ role: 'system', content })
        break
      }
      case 'user': {
        const content = userContent(message.content, at, options.documents ? documents : undefined)
        if (content.length > 0) turns.push({ role: 'user', content })
        break
      }
      case 'assistant': {
        const turn = answerOf(step, target, options.thinking)
        if (turn) turns.push(turn)
        const shown: Json[] = []
        for (const call of calls) turns.push(resultOf(call, shown))
        if (shown.length > 0) turns.push({ role: 'user', content: shown })
      }
    }
  }
  const first = turns.findIndex(({ role }) => role !== 'system')
  if (turns[first]?.role === 'assistant') turns.splice(first, 0, { role: 'user', content: SILENCE })
  // A history ends with a user message or a result; the wire has no prefill (R15).
  const last = turns.at(-1)?.role ?? 'system'
  if (last === 'system' || last === 'assistant') {
    turns.push({ role: 'user', content: last === 'system' ? SILENCE : GO_ON })
  }
  return { messages: turns, documents }
}

/** Undefined for an answer without content and calls. Beside calls the wire accepts text only as their plan. */
function answerOf({ message, at, calls }: PairedMessage, target: Target, thinks: boolean): Json | undefined {
  const text = plainText(message.content, at, message.role) || wellFormed(message.refusal ?? '')
  const thinking = thinks
    ? replayThinking(message, target).map(({ text }) => ({ type: 'thinking', thinking: text }))
    : []
  if (calls.length > 0) {
    return {
      role: 'assistant',
      ...(text !== '' && { tool_plan: text }),
      ...(text === '' && thinking.length > 0 && { content: thinking }),
      tool_calls: calls.map(callOf),
    }
  }
  if (thinking.length === 0) return text === '' ? undefined : { role: 'assistant', content: text }
  return { role: 'assistant', content: text === '' ? thinking : [...thinking, { type: 'text', text }] }
}

/** Any id is accepted, but it must be unique within a message. */
const idOf = ({ call, copy }: Answered): string => `${call.id || 'call'}${copy === 0 ? '' : `_${copy + 1}`}`

function callOf(answered: Answered): Json {
  const { name, arguments: args } = answered.call.function
  return {
    id: idOf(answered),
    type: 'function',
    function: { name: toWireName(name), arguments: toolArguments(args) },
  }
}

/** Adds content of a result that only a user message may carry to `shown`. */
function resultOf(answered: Answered, shown: Json[]): Json {
  const { result, at } = answered
  const content = result ? resultContent(resultWithErrorText(result), at, shownFor(result).text, shown) : NO_RESULT
  return { role: 'tool', tool_call_id: idOf(answered), content }
}
