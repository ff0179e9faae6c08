/** Token counts of Cohere's wire as usage axes. */
import { countIn, isObject, type Usage } from '../../src/plugin.ts'

/**
 * `usage.tokens`: what the model read and wrote, for reports. `billed_units` are fewer, as they leave out the
 * provider's own instructions: they are what is paid for. The cache
 * gives what comes first, which those instructions are; only what it gives beyond them is of what is billed.
 */
export function usageOf(report: unknown): { usage: Partial<Usage>; billed?: Partial<Usage> } | undefined {
  if (!isObject(report)) return undefined
  const billed = countsOf(report.billed_units)
  const counts = countsOf(report.tokens) ?? billed
  if (!counts) return undefined
  const cached = countIn(report.cached_tokens) ?? 0
  const usage: Partial<Usage> = { ...counts }
  // C37: more in the cache than was read at all means that it was counted apart.
  if (usage.prompt !== undefined && cached > usage.prompt) usage.prompt += cached
  if (cached > 0) usage.input_cache_read = cached
  if (!billed || billed === counts) return { usage }
  const unbilled = (usage.prompt ?? 0) - (billed.prompt ?? 0)
  return { usage, billed: { ...billed, input_cache_read: Math.max(0, cached - unbilled) } }
}

/** Undefined without a count; a side that is not told is estimated (C4). */
function countsOf(units: unknown): Partial<Usage> | undefined {
  if (!isObject(units)) return undefined
  const prompt = countIn(units.input_tokens)
  const completion = countIn(units.output_tokens)
  if (!prompt && !completion) return undefined
  return { ...(prompt !== undefined && { prompt }), ...(completion !== undefined && { completion }) }
}
