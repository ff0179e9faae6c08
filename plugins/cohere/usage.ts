/** Token counts of Cohere's wire as usage axes. */
import { countIn, isObject, type Usage } from '../../src/plugin.ts'

/**
 * `usage.tokens` counts tokens read and written, for reports; `billed_units` exclude the provider's own instructions
 * and are charged. The cache covers the beginning, which contains those instructions: only cached tokens beyond them
 * are billed ones.
 */
export function usageOf(report: unknown): { usage: Partial<Usage>; billed?: Partial<Usage> } | undefined {
  if (!isObject(report)) return undefined
  const billed = countsOf(report.billed_units)
  const counts = countsOf(report.tokens) ?? billed
  if (!counts) return undefined
  const cached = countIn(report.cached_tokens) ?? 0
  const usage: Partial<Usage> = { ...counts }
  // C37: more cached than read tokens means that the cache is counted separately.
  if (usage.prompt !== undefined && cached > usage.prompt) usage.prompt += cached
  if (cached > 0) usage.input_cache_read = cached
  if (!billed || billed === counts) return { usage }
  const unbilled = (usage.prompt ?? 0) - (billed.prompt ?? 0)
  return { usage, billed: { ...billed, input_cache_read: Math.max(0, cached - unbilled) } }
}

/** Undefined without a count; an unreported side is estimated (C4). */
function countsOf(units: unknown): Partial<Usage> | undefined {
  if (!isObject(units)) return undefined
  const prompt = countIn(units.input_tokens)
  const completion = countIn(units.output_tokens)
  if (!prompt && !completion) return undefined
  return { ...(prompt !== undefined && { prompt }), ...(completion !== undefined && { completion }) }
}
