/** Splits the blocks of a whole message into the pieces of a stream. */
import { entriesIn, isObject, type Json } from '../../src/plugin.ts'

interface Pieces {
  /** As in `contentBlockStart`. */
  readonly start?: Json
  /** As in `contentBlockDelta`. */
  readonly deltas: readonly unknown[]
}

/** What a stream would send of this block, in the same order. */
export function piecesOf({ text, toolUse, reasoningContent: thought, citationsContent: cited, image }: Json): Pieces {
  if (toolUse) return { start: { toolUse }, deltas: [] }
  if (image) return { start: { image }, deltas: [{ image }] }
  if (isObject(thought)) {
    const { reasoningText: shown, redactedContent } = thought
    const { text, signature } = isObject(shown) ? shown : {}
    return { deltas: [{ reasoningContent: { text, signature, redactedContent } }] }
  }
  if (isObject(cited)) {
    const citations = entriesIn(cited.citations).map(citation => ({ citation }))
    return { deltas: [...entriesIn(cited.content), ...citations] }
  }
  return { deltas: [{ text }] }
}
