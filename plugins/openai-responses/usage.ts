/** Token counts of the Responses wire as usage axes. */
import { countIn, type Json, objectIn, type Usage } from '../../src/plugin.ts'
import { withCache } from '../shared/usage-reports.ts'

const count = (value: unknown): number => countIn(value) ?? 0

/** `input_tokens` includes cache reads and writes, `output_tokens` the reasoning. Undefined without counts. */
export function usageOf(response: Json): Partial<Usage> | undefined {
  const report = objectIn(response.usage)
  const read = objectIn(report.input_tokens_details)
  const made = objectIn(report.output_tokens_details)
  const cached = count(read.cached_tokens)
  const reasoning = count(made.reasoning_tokens)
  const searches = count(objectIn(objectIn(response.tool_usage).web_search).num_requests)
  // An unreported side is estimated (C4).
  const prompt = countIn(report.input_tokens)
  const completion = countIn(report.output_tokens)

  const usage: Partial<Usage> = {}
  if (prompt || completion) {
    const { prompt: whole, written } = withCache(prompt, cached, count(read.cache_write_tokens))
    if (whole !== undefined) usage.prompt = whole
    // C35: more reasoning than output tokens means that reasoning is counted separately.
    if (completion !== undefined) usage.completion = reasoning > completion ? completion + reasoning : completion
    if (cached > 0) usage.input_cache_read = cached
    if (written > 0) usage.input_cache_write = written
    if (reasoning > 0) usage.internal_reasoning = reasoning
  }
  if (searches > 0) usage.web_search = searches
  return Object.keys(usage).length > 0 ? usage : undefined
}
