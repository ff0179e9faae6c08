/** Tool results of this wire are text: OpenAI rejects other parts in them. */
import {
  type ContentPart,
  type Message,
  resultText,
  resultWithErrorText,
  SHOWN_NEXT,
  shownFor,
} from '../../src/plugin.ts'

const isResult = ({ role }: Message): boolean => role === 'tool' || role === 'function'
const isText = ({ type }: ContentPart): boolean => type === 'text' || type === 'refusal'
const isPlain = ({ content, is_error: failed }: Message): boolean =>
  failed !== true && (!Array.isArray(content) || content.every(isText))

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
