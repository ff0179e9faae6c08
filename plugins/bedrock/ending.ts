/** How an answer ended. */
import type { ChatRequest, FinishReason, WireFields } from '../../src/plugin.ts'
import { stopEnding } from '../shared/stops.ts'

interface Ending {
  readonly reason: FinishReason
  readonly ending?: WireFields
}

/** `calls`: those of the answer. Messages clients read in `ending` which stop sequence of `request` ended it. */
export function endingOf(
  stopReason: string | undefined,
  calls: number,
  request: Readonly<ChatRequest> | undefined,
): Ending {
  const ending = stopReason === 'stop_sequence' ? stopEnding(request) : undefined
  return { reason: finishReasonOf(stopReason, calls), ...(ending && { ending }) }
}

/** `calls` decides between stop and tool_calls (C10): an answer given by tool is text, not a call. */
function finishReasonOf(stopReason: string | undefined, calls: number): FinishReason {
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
