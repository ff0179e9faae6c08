/** Fields about an answer in the Messages form, streamed or whole (docs/contract.md#messages). */
import type { Exchange } from '../../core/exchange.ts'
import { answerIdOf, answerModelOf } from '../accounting.ts'
import type { Blocks } from './blocks.ts'

/** The fields before its content. */
export const headOf = (ex: Exchange) => ({
  id: `msg_${answerIdOf(ex)}`,
  type: 'message',
  role: 'assistant',
  model: answerModelOf(ex),
})

/** Context edits; beside the stop reason, not inside it. */
export const contextOf = ({ contextManagement: context }: Blocks) =>
  context === undefined ? undefined : { context_management: context }

/** How it ended. */
export const endingOf = ({ stopReason, stopSequence, stopDetails, container }: Blocks) => ({
  stop_reason: stopReason,
  stop_sequence: stopSequence,
  ...(stopDetails !== undefined && { stop_details: stopDetails }),
  ...(container !== undefined && { container }),
})
