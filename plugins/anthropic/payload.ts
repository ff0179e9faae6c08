/** What the wire's answers may hold; every field is checked where it is read. */
import type { Block } from '../shared/claude/blocks.ts'

/** What an event may hold. */
export interface Payload extends Message {
  type?: unknown
  index?: number
  message?: Message
  content_block?: Block
  delta?: Delta
}
/** A whole answer, or the begin of one. */
export interface Message {
  id?: unknown
  model?: unknown
  content?: unknown
  stop_reason?: unknown
  stop_sequence?: unknown
  stop_details?: { explanation?: unknown } | null
  container?: unknown
  context_management?: unknown
  usage?: unknown
}
/** What an event adds to a block, or to the message. */
export interface Delta {
  type?: unknown
  text?: unknown
  thinking?: unknown
  signature?: unknown
  partial_json?: unknown
  citation?: unknown
  stop_reason?: unknown
  stop_sequence?: unknown
  stop_details?: Message['stop_details']
  container?: unknown
  context_management?: unknown
}
