/** Token counts of the Responses wire as usage axes. */
import { countIn, isObject, type Json, objectIn, type Usage } from '../../src/plugin.ts'
import { withCache } from '../shared/usage-reports.ts'

const NONE: Json = {}
const count = (value: unknown): number => countIn(value) ?? 0

/** `input_tokens` includes cache reads and writes, `output_tokens` the reasoning. Undefined without counts. */
export function usageOf(response: Json): Partial<Usage> | undefined {
  const report = isObject(response.usage) ? response.usage : NONE
  const read = isObject(report.input_tokens_details) ? report.input_tokens_details : NONE
  const made = isObject(report.output_tokens_details) ? report.output_tokens_details : NONE
  const cached = count(read.cached_tokens)
  const reasoning = count(made.reasoning_tokens)
  const searches = searchesOf(response)
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

function searchesOf({ tool_usage: used }: Json): number {
  const search = objectIn(used).web_search
  return isObject(search) ? count(search.num_requests) : 0
}
