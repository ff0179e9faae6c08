/** Possible contents of the wire's answers; each field is checked where it is read. */
import type { Block } from '../shared/claude/blocks.ts'

/** Contents of an event. */
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
/** Additions of an event to a block or the message. */
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
