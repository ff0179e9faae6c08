/**
 * Assistant turns of clients that concatenate all fields of a stream's deltas: some values come back joined or
 * repeated.
 */
import { createHash } from 'node:crypto'
import type { Message } from '../core/chat-request.ts'
import { isWellFormed } from '../json/json.ts'
import { textKey } from '../json/text-key.ts'

/** The turn as it was answered: the phase is the last one, and no list repeats an entry. */
export function asAnswered(message: Message): Message {
  const { phase, message_items: items, reasoning_details: details, provider_native_blocks: blocks } = message
  if (phase == null && !items && !details && !blocks) return message
  const answered = { ...message }
  if (phase != null) answered.phase = phase.endsWith('final_answer') ? 'final_answer' : 'commentary'
  if (items) answered.message_items = withoutRepeats(items)
  if (details) answered.reasoning_details = withoutRepeats(joinedDetails(details))
  if (blocks) answered.provider_native_blocks = withoutRepeats(blocks)
  return answered
}

type Detail = NonNullable<Message['reasoning_details']>[number] & { index?: unknown; block_index?: unknown }

/**
 * Details with the pieces of a streamed thought as one entry: pieces have its `index`, and its signature ends it. A
 * signature without its text, of a client that keeps the last piece alone, is left out.
 */
function joinedDetails(details: readonly Detail[]): Detail[] {
  const thoughts = new Map<number, Detail>()
  const texts = new Map<Detail, string[]>()
  const joined: Detail[] = []
  for (const { index, ...piece } of details) {
    // An empty signature is none; an empty text in its place marks a false seal later.
    if (piece.signature === '') piece.signature = null
    if (typeof index !== 'number' || piece.type !== 'reasoning.text' || piece.data != null) {
      joined.push(index === undefined || piece.data != null ? piece : Object.assign(piece, { index }))
      continue
    }
    let thought = thoughts.get(index)
    if (!thought) {
      const format = piece.format == null ? {} : { format: once(piece.format) }
      // Clients that add up numbers return a sum in place of `block_index`.
      thought = Object.assign({}, piece, format, piece.block_index === undefined ? undefined : { block_index: index })
      thoughts.set(index, thought)
      joined.push(thought)
      texts.set(thought, [])
    } else if (thought.signature) continue
    else if (piece.signature) thought.signature = piece.signature
    if (typeof piece.text === 'string') texts.get(thought)!.push(piece.text)
  }
  for (const [thought, pieces] of texts) if (pieces.length > 0) thought.text = pieces.join('')
  return joined.filter(detail => !texts.has(detail) || detail.text != null)
}

/** A format as it was sent: clients that add up all texts return it repeated. */
function once(format: string): string {
  const version = /-v\d/.exec(format)
  if (!version) return format
  const first = format.slice(0, version.index + version[0].length)
  return first.repeat(format.length / first.length) === format ? first : format
}

/** Characters of a string that is not written again to be compared. */
const MAX_COMPARED_CHARACTERS = 1024

/** Equal for equal entries alone. */
const keyOf = (entry: unknown): string =>
  textKey(isShort(entry) ? JSON.stringify(entry) : JSON.stringify(entry, shortened))

const shortened = (_name: string, value: unknown): unknown =>
  typeof value === 'string' && !isShort(value) ? createHash('sha256').update(value, 'utf16le').digest('base64') : value

/** Without long strings, and without halves of characters, which take long to be written. */
function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length < MAX_COMPARED_CHARACTERS && isWellFormed(value)
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
