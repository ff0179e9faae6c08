/** Fields about an answer in the Messages form, streamed or whole, and its usage (docs/contract.md#messages). */
import type { Exchange } from '../../core/exchange.ts'
import { answerIdOf, answerModelOf, usageInfo, usdOf } from '../accounting.ts'
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

/** The usage so far. This wire's input excludes cache reads and writes. */
function tokensOf({ usage, answer: { servedTier: tier } }: Exchange) {
  const read = usage.input_cache_read ?? 0
  const written5m = usage.input_cache_write ?? 0
  const written1h = usage.input_cache_write_1h ?? 0
  const written = written5m + written1h
  return {
    input_tokens: Math.max(0, (usage.prompt ?? 0) - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    ...(written > 0 && {
      cache_creation: { ephemeral_5m_input_tokens: written5m, ephemeral_1h_input_tokens: written1h },
    }),
    output_tokens: usage.completion ?? 0,
    ...(usage.internal_reasoning && { output_tokens_details: { thinking_tokens: usage.internal_reasoning } }),
    ...(usage.web_search && { server_tool_use: { web_search_requests: usage.web_search, web_fetch_requests: 0 } }),
    ...(tier !== undefined && { service_tier: tier === 'default' ? 'standard' : tier }),
  }
}

/** The usage that a stream begins with. Some clients read the prompt only here, and some add the output to the last count. */
export function firstTokensOf(ex: Exchange): object {
  const tokens = tokensOf(ex)
  if (ex.usage.prompt === undefined) tokens.input_tokens = ex.prompt.usage.prompt ?? 0
  tokens.output_tokens = 0
  delete tokens.output_tokens_details
  return tokens
}

/** The usage of a whole answer, with its cost in USD; null while the price is unknown. Call it after the last event. */
export const totalsOf = (ex: Exchange): object => ({
  ...tokensOf(ex),
  ...{ cost: usdOf(ex), info: usageInfo(ex) },
})
