/** Usage reports of all dialects in one form: `prompt` includes cached tokens, `completion` reasoning. */
import { countIn, isObject, type Json, type Usage } from '../../../src/plugin.ts'

const NONE: Json = {}

const count = (value: unknown): number => countIn(value) ?? 0

/** The report of a chunk, wherever it is; a later one replaces an earlier one (C3). */
export function usageIn(chunk: Json, choice: unknown): Partial<Usage> | undefined {
  if (isObject(chunk.usage)) return normalise(chunk.usage)
  if (isObject(chunk.x_groq) && isObject(chunk.x_groq.usage)) return normalise(chunk.x_groq.usage)
  if (isObject(choice) && isObject(choice.usage)) return normalise(choice.usage)
  return undefined
}

/** Undefined for a report of zeros: some providers send it until they have counted. */
function normalise(report: Json): Partial<Usage> | undefined {
  const read = isObject(report.prompt_tokens_details) ? report.prompt_tokens_details : NONE
  const made = isObject(report.completion_tokens_details) ? report.completion_tokens_details : NONE
  const other = isObject(report.prompt_token_details) ? report.prompt_token_details : NONE
  const cached = Math.max(
    count(read.cached_tokens ?? report.prompt_cache_hit_tokens ?? report.cached_tokens),
    // Mistral reports it in any of three places.
    count(report.num_cached_tokens),
    count(other.cached_tokens),
  )
  const written = count(
    read.cache_write_tokens ?? read.cache_creation_input_tokens ?? report.cache_creation_input_tokens,
  )
  const reasoning = count(made.reasoning_tokens ?? report.reasoning_tokens)
  const total = count(report.total_tokens)
  // A missing side follows from the sum, or is estimated (C4).
  let prompt = countIn(report.prompt_tokens)
  let completion = countIn(report.completion_tokens)
  if (!prompt && !completion) return undefined
  if (prompt === undefined && total > completion!) prompt = total - completion!
  if (completion === undefined && total > prompt!) completion = total - prompt!

  // C35: the sum shows whether reasoning is counted separately; so does more reasoning than completion.
  if (completion !== undefined && reasoning > 0) {
    if (reasoning > completion || total === (prompt ?? 0) + completion + reasoning) completion += reasoning
  }
  // C37: more cached than read tokens means that the cache is counted separately.
  if (prompt !== undefined && cached + written > prompt) prompt += cached + written

  const usage: Usage = {}
  if (prompt !== undefined) usage.prompt = prompt
  if (completion !== undefined) usage.completion = completion
  if (cached > 0) usage.input_cache_read = cached
  if (written > 0) usage.input_cache_write = written
  if (reasoning > 0) usage.internal_reasoning = reasoning
  const inputAudio = count(read.audio_tokens)
  if (inputAudio > 0) usage.input_audio = inputAudio
  const inputVideo = count(read.video_tokens)
  if (inputVideo > 0) usage.input_video = inputVideo
  const outputAudio = count(made.audio_tokens)
  if (outputAudio > 0) usage.output_audio = outputAudio
  const imageTokens = count(made.image_tokens)
  if (imageTokens > 0) usage.image_output = imageTokens
  const searches = searchesIn(report)
  if (searches > 0) usage.web_search = searches
  return usage
}

function searchesIn(report: Json): number {
  const server = isObject(report.server_tool_use) ? report.server_tool_use.web_search_requests : undefined
  return count(report.num_search_queries ?? report.num_sources_used ?? server)
}
