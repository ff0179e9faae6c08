/**
 * Assistant turns of clients that concatenate all fields of a stream's deltas: some values come back joined or
 * repeated.
 */
import { createHash } from 'node:crypto'
import type { Message } from '../core/chat-request.ts'
import { isWellFormed } from '../core/json.ts'
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

/** Characters of a string that is not written again to be compared. */
const LONG = 1024

/** Equal for equal entries alone. */
const keyOf = (entry: unknown): string =>
  textKey(isShort(entry) ? JSON.stringify(entry) : JSON.stringify(entry, shortened))

const shortened = (_name: string, value: unknown): unknown =>
  typeof value === 'string' && !isShort(value) ? createHash('sha256').update(value, 'utf16le').digest('base64') : value

/** Without long strings, and without halves of characters, which take long to be written. */
function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length < LONG && isWellFormed(value)
  if (typeof value !== 'object' || value === null) return true
  for (const name in value) if (!isShort((value as Record<string, unknown>)[name])) return false
  return true
}

function withoutRepeats<T>(list: T[]): T[] {
  if (list.length < 2) return list
  const seen = new Set<string>()
  return list.filter(entry => {
    const { size } = seen
    return seen.add(keyOf(entry)).size > size
  })
}
