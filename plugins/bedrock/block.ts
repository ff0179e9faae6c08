/** Objects of the Converse wire, each identified by its only key. */
import type { Json } from '../../src/plugin.ts'

/** A content block, or an element of `system` or of `toolConfig.tools`. */
export type Block = Json

/** A turn of `messages`. */
export interface ConverseTurn {
  role: 'user' | 'assistant'
  content: Block[]
}

/** A block of text, which must not be empty. */
export const textBlock = (text: string): Block => ({ text })
