/** Possible contents of the wire's answers, each checked where it is read, and how answers end. */

import type { FinishReason, WireFields } from '../../src/plugin.ts'
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

/** Stop reasons that no finish reason distinguishes. */
const BEYOND = new Set(['pause_turn', 'stop_sequence', 'model_context_window_exceeded', 'compaction'])

/** Details for clients of the same wire; undefined when the finish reason suffices. */
export function endingOf(
  stop_reason: string,
  { stop_sequence = null, stop_details, container, context_management: context }: Delta | Message,
): WireFields | undefined {
  const more = {
    ...(stop_details && { stop_details }),
    ...(container != null && { container }),
    ...(context != null && { context_management: context }),
  }
  if (!BEYOND.has(stop_reason) && Object.keys(more).length === 0) return undefined
  return { wire: 'anthropic.messages', fields: { stop_reason, stop_sequence, ...more } }
}

/** Calls decide between stop and tool_calls (C10): an answer given by tool is text, not a call. */
export function finishReasonOf(stopReason: string, calls: number): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'refusal':
      return 'content_filter'
    default:
      return calls > 0 ? 'tool_calls' : 'stop'
  }
}
