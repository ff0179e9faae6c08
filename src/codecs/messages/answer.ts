/** What an answer in the Messages form says of itself, streamed or whole (field notes 1.3). */
import type { Exchange } from '../../core/exchange.ts'
import type { Blocks } from './blocks.ts'

/** The fields that come before its content. */
export const headOf = (ex: Exchange) => ({
  id: `msg_${ex.logId}`,
  type: 'message',
  role: 'assistant',
  model: ex.cached?.model ?? ex.target?.mapping.model.id ?? ex.requestedModel,
})

/** What was left out of the conversation; beside the reason, not with it. */
export const contextOf = ({ contextManagement: context }: Blocks) =>
  context === undefined ? undefined : { context_management: context }

/** Why it ended. */
export const endingOf = ({ stopReason, stopSequence, stopDetails, container }: Blocks) => ({
  stop_reason: stopReason,
  stop_sequence: stopSequence,
  ...(stopDetails !== undefined && { stop_details: stopDetails }),
  ...(container !== undefined && { container }),
})
