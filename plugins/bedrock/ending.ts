/** How an answer ended. */
import type { FinishReason } from '../../src/plugin.ts'

/** `calls` decides between stop and tool_calls (C10): an answer given by tool is text, not a call. */
export function finishReasonOf(stopReason: string | undefined, calls: number): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'content_filtered':
    case 'guardrail_intervened':
    case 'refusal':
      return 'content_filter'
    default:
      return calls > 0 ? 'tool_calls' : 'stop'
  }
}
