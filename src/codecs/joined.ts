/**
 * Assistant turns of clients that concatenate all fields of a stream's deltas: some values come back joined or
 * repeated.
 */
import type { Message } from '../core/chat-request.ts'
import { textKey } from '../core/text-key.ts'

/** The turn as it was answered: the phase is the last one, and no list repeats an entry. */
export function asAnswered(message: Message): Message {
  const { phase, message_items: items, reasoning_details: details, provider_native_blocks: blocks } = message
  if (phase == null && !items && !details && !blocks) return message
  const answered = { ...message }
  if (phase != null) answered.phase = phase.endsWith('final_answer') ? 'final_answer' : 'commentary'
  if (items) answered.message_items = withoutRepeats(items)
  if (details) answered.reasoning_details = withoutRepeats(details)
  if (blocks) answered.provider_native_blocks = withoutRepeats(blocks)
  return answered
}

function withoutRepeats<T>(list: T[]): T[] {
  if (list.length < 2) return list
  const seen = new Set<string>()
  return list.filter(entry => {
    const { size } = seen
    return seen.add(textKey(JSON.stringify(entry))).size > size
  })
}
