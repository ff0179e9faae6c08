/** Results of tools, for wires that have no form for all that a result may hold. */
import type { ContentPart, Message } from '../core/chat-request.ts'

type Content = Message['content']
type TextPart = Extract<ContentPart, { type: 'text' }>

/**
 * Maximum characters of tool results that are parsed in one request. Longer ones are sent as text, which means the
 * same.
 */
export const MAX_PARSED_RESULTS = 1024 * 1024

/** The text of a result. Beside what is no text, each text is a line of its own. */
export function resultText(content: Content): string {
  if (typeof content === 'string') return content
  const texts: string[] = []
  for (const part of content ?? []) if (part.type === 'text') texts.push(part.text)
  return texts.join(texts.length === content?.length ? '' : '\n')
}

/** The content of a result, for wires that have no mark for a tool that failed: its text says so. */
export function resultWithErrorText({ content, is_error: failed }: Message): Content {
  if (failed !== true) return content
  if (!Array.isArray(content)) return failure(content ?? '')
  const first = content.findIndex(isText)
  // Behind all else, so that every part stays where errors say it is.
  if (first < 0) return [...content, { type: 'text', text: failure('') }]
  const part = content[first] as TextPart
  return content.with(first, { ...part, text: failure(part.text) })
}

const isText = (part: ContentPart): part is TextPart => part.type === 'text'

const failure = (text: string): string => (/^\W*error\b/i.test(text) ? text : `Error: ${text || 'the tool failed.'}`)

/** Stands for a result whose content a user's message shows, for wires that take text alone. */
export const SHOWN_NEXT = 'The result is attached to the next message.'

/** Stands before that content, in the user's message. */
export const shownFor = ({ tool_call_id: id }: Message): TextPart => ({
  type: 'text',
  text: `Attached to the result of tool call ${id}:`,
})
