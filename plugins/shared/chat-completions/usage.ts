/** Usage reports of all dialects in one form: `prompt` includes cached tokens, `completion` reasoning. */
import { countIn, isObject, type Json, objectIn, type Usage } from '../../../src/plugin.ts'
import { type Counts, UsageReports, withCache } from '../usage-reports.ts'

/** The report of a chunk, wherever it is. */
export function reportIn(chunk: Json, choice: unknown): Json | undefined {
  if (isObject(chunk.usage)) return chunk.usage
  if (isObject(chunk.x_groq) && isObject(chunk.x_groq.usage)) return chunk.x_groq.usage
  if (isObject(choice) && isObject(choice.usage)) return choice.usage
  return undefined
}

/** The reports of one answer. A report of zeros is none: some providers send it until they have counted (C3). */
export const usageReports = () => new UsageReports(countsOf, usageOf)

function countsOf(report: Json) {
  const read = objectIn(report.prompt_tokens_details)
  const made = objectIn(report.completion_tokens_details)
  const other = objectIn(report.prompt_token_details)
  const named = report.cached_tokens ?? report.cache_read_input_tokens
  const cached = countIn(read.cached_tokens ?? report.prompt_cache_hit_tokens ?? named)
  return {
    prompt: countIn(report.prompt_tokens),
    completion: countIn(report.completion_tokens),
    total: countIn(report.total_tokens),
    // Mistral reports it in any of three places.
    cached: larger(cached, larger(countIn(report.num_cached_tokens), countIn(other.cached_tokens))),
    written: countIn(read.cache_write_tokens ?? read.cache_creation_input_tokens ?? report.cache_creation_input_tokens),
    reasoning: countIn(made.reasoning_tokens ?? report.reasoning_tokens),
    inputAudio: countIn(read.audio_tokens),
    inputVideo: countIn(read.video_tokens),
    outputAudio: countIn(made.audio_tokens),
    imageOutput: countIn(made.image_tokens),
    searches: searchesIn(report),
  }
}

function usageOf(counts: Counts<keyof ReturnType<typeof countsOf>>): Partial<Usage> | undefined {
  const { total = 0, cached = 0, reasoning = 0 } = counts
  // A missing side follows from the sum, or is estimated (C4).
  let { prompt, completion } = counts
  if (!prompt && !completion) return undefined
  if (prompt === undefined && total > completion!) prompt = total - completion!
  if (completion === undefined && total > prompt!) completion = total - prompt!

  // C35: the sum shows whether reasoning is counted separately; so does more reasoning than completion.
  if (completion !== undefined && reasoning > 0) {
    if (reasoning > completion || total === (prompt ?? 0) + completion + reasoning) completion += reasoning
  }
  const whole = withCache(prompt, cached, counts.written ?? 0)

  const usage: Partial<Usage> = {}
  if (whole.prompt !== undefined) usage.prompt = whole.prompt
  if (completion !== undefined) usage.completion = completion
  if (cached > 0) usage.input_cache_read = cached
  if (whole.written > 0) usage.input_cache_write = whole.written
  if (reasoning > 0) usage.internal_reasoning = reasoning
  if (counts.inputAudio) usage.input_audio = counts.inputAudio
  if (counts.inputVideo) usage.input_video = counts.inputVideo
  if (counts.outputAudio) usage.output_audio = counts.outputAudio
  if (counts.imageOutput) usage.image_output = counts.imageOutput
  if (counts.searches) usage.web_search = counts.searches
  return usage
}

function searchesIn(report: Json): number | undefined {
  const server = objectIn(report.server_tool_use).web_search_requests
  return countIn(report.num_search_queries ?? report.num_sources_used ?? server)
}

const larger = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || (other !== undefined && other > one) ? other : one
