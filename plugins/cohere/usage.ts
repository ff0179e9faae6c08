/** Token counts of Cohere's wire as usage axes. */
import { isObject, type Usage } from '../../src/plugin.ts'

const count = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0)

/**
 * `usage.tokens`: what the model read and wrote. `billed_units` are fewer, as they leave out the provider's own
 * instructions, but they cannot stand beside the others in one report: the share that came from the cache is counted
 * in `tokens`, and a client is billed by the very numbers that it is shown. A cost is therefore at most too high.
 */
export function usageOf(report: unknown): Partial<Usage> | undefined {
  if (!isObject(report)) return undefined
  const tokens = isObject(report.tokens) ? report.tokens : report.billed_units
  if (!isObject(tokens)) return undefined
  const cached = count(report.cached_tokens)
  let prompt = count(tokens.input_tokens)
  const completion = count(tokens.output_tokens)
  if (prompt === 0 && completion === 0) return undefined
  // C37: more in the cache than was read at all means that it was counted apart.
  if (cached > prompt) prompt += cached
  return cached > 0 ? { prompt, completion, input_cache_read: cached } : { prompt, completion }
}
