/** Tool results as OpenAI takes them: each is text, and follows its call. */
import {
  type ContentPart,
  type Message,
  resultText,
  resultWithErrorText,
  SHOWN_NEXT,
  shownFor,
} from '../../src/plugin.ts'
import { NO_RESULT } from '../shared/chat-completions/tool-results.ts'

const isResult = ({ role }: Message): boolean => role === 'tool' || role === 'function'
const isText = ({ type }: ContentPart): boolean => type === 'text' || type === 'refusal'
const isPlain = ({ content, is_error: failed }: Message): boolean =>
  failed !== true && (!Array.isArray(content) || content.every(isText))

/** Whether each call has one result, right behind its message. */
function areAnswered(messages: readonly Message[]): boolean {
  let open: Set<string> | undefined
  for (const message of messages) {
    if (isResult(message)) {
      if (!open?.delete(message.tool_call_id ?? '')) return false
    } else {
      if (open?.size) return false
      if (message.tool_calls?.length) open = new Set(message.tool_calls.map(({ id }) => id))
    }
  }
  return !open?.size
}

/**
 * The messages, with each result behind its call: the last one where there are several, and a stand-in where there is none.
 * A result without a call leaves them as they are.
 */
export function withResultsOfCalls(messages: readonly Message[]): readonly Message[] {
  if (areAnswered(messages)) return messages
  const open = new Map<string, { message: Message }>()
  const out: { message: Message }[] = []
  for (const message of messages) {
    if (isResult(message)) {
      const called = open.get(message.tool_call_id ?? '')
      if (!called) return messages
      called.message = message
      continue
    }
    out.push({ message })
    for (const { id } of message.tool_calls ?? []) {
      const result = { message: { role: 'tool', tool_call_id: id, content: NO_RESULT } as Message }
      open.set(id, result)
      out.push(result)
    }
  }
  return out.map(({ message }) => message)
}

/** The messages, with other content of results moved to a user message after the results of the turn. */
export function withTextResults(messages: readonly Message[]): readonly Message[] {
  if (messages.every(message => !isResult(message) || isPlain(message))) return messages
  const out: Message[] = []
  let shown: ContentPart[] = []
  for (const message of messages) {
    if (isResult(message)) out.push(isPlain(message) ? message : plain(message, shown))
    else if (shown.length > 0) {
      const isUser = message.role === 'user'
      out.push(isUser ? { ...message, content: [...shown, ...partsOf(message)] } : { role: 'user', content: shown })
      if (!isUser) out.push(message)
      shown = []
    } else out.push(message)
  }
  if (shown.length > 0) out.push({ role: 'user', content: shown })
  return out
}

/** A result with text only; its other content is added to `shown`. */
function plain(message: Message, shown: ContentPart[]): Message {
  const content = resultWithErrorText(message)
  if (!Array.isArray(content) || content.every(isText)) return { ...message, content }
  shown.push(shownFor(message), ...content.filter(part => !isText(part)))
  return { ...message, content: resultText(content) || SHOWN_NEXT }
}

const partsOf = ({ content }: Message): readonly ContentPart[] =>
  typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : (content ?? [])
