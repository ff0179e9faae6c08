/** What a candidate would cost, as far as it can be compared beforehand: docs/contract.md#routing-score. */
import type { Candidate } from './candidate.ts'
import type { Settings } from './settings.ts'

/**
 * In pico-USD per token, or per image. `cached`: a part of the prompt is expected to be read from the provider's
 * cache. Undefined when unknown.
 */
export function priceOf(
  { rates, image }: Candidate,
  promptTokens: number,
  cached: boolean,
  { thresholds }: Pick<Settings, 'thresholds'>,
): number | undefined {
  let rate = rates[0]!
  for (const tier of rates) if (promptTokens > tier.above) rate = tier
  const { input, output = 0 } = rate
  if (input === undefined) return undefined
  if (image) return input
  if (!cached) return (input + output) / 2
  const { cache_hit_rate: hit, cache_output_ratio: ratio } = thresholds
  return ((rate.cached ?? input) * hit + input * (1 - hit) + output * ratio) / 2
}
