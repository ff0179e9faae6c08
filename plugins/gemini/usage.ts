/** Token counts of the wire as usage axes. */
import { countIn, isObject, type Json, listIn, type Usage } from '../../src/plugin.ts'

const count = (value: unknown): number => countIn(value) ?? 0

/**
 * Counts come with every chunk, and a later report may take back a part of an earlier one: the last one holds. So
 * what was answered is told at the end; what was asked does not change and is told at once.
 */
export class UsageMeter {
  #last: Usage | undefined
  #toldPrompt = 0

  /** Takes a `usageMetadata`; returns the part of it that is certain already, if that is new. */
  add(report: unknown): Usage | undefined {
    // Some reports tell only how the request was served.
    if (!isObject(report) || typeof (report.promptTokenCount ?? report.totalTokenCount) !== 'number') return undefined
    const usage = usageOf(report)
    this.#last = usage
    if (count(usage.prompt) <= this.#toldPrompt) return undefined
    this.#toldPrompt = count(usage.prompt)
    const { completion: _, internal_reasoning: _r, image_output: _i, output_audio: _o, ...asked } = usage
    return asked
  }

  /** All that was reported; undefined when nothing was. */
  get total(): Usage | undefined {
    return this.#last
  }
}

/** The wire counts thoughts apart from the answer, and results of its own tools apart from the prompt. */
function usageOf(report: Json): Usage {
  const cached = count(report.cachedContentTokenCount)
  const thoughts = count(report.thoughtsTokenCount)
  const prompt = count(report.promptTokenCount) + count(report.toolUsePromptTokenCount)
  const usage: Usage = {
    // C37: more in the cache than was read at all means that it was counted apart.
    prompt: cached > prompt ? prompt + cached : prompt,
    completion: count(report.candidatesTokenCount) + thoughts,
  }
  if (cached > 0) usage.input_cache_read = cached
  if (thoughts > 0) usage.internal_reasoning = thoughts
  const heard = ofModality(report.promptTokensDetails, 'AUDIO')
  if (heard > 0) usage.input_audio = heard
  const watched = ofModality(report.promptTokensDetails, 'VIDEO')
  if (watched > 0) usage.input_video = watched
  const heardBefore = ofModality(report.cacheTokensDetails, 'AUDIO')
  if (heardBefore > 0) usage.input_audio_cache_read = heardBefore
  const imageTokens = ofModality(report.candidatesTokensDetails, 'IMAGE')
  if (imageTokens > 0) usage.image_output = imageTokens
  const said = ofModality(report.candidatesTokensDetails, 'AUDIO')
  if (said > 0) usage.output_audio = said
  return usage
}

/** Tokens of one kind, such as `IMAGE`, in a list of counts by kind. */
export function ofModality(details: unknown, modality: string): number {
  let sum = 0
  for (const detail of listIn(details)) {
    if (isObject(detail) && detail.modality === modality) sum += count(detail.tokenCount)
  }
  return sum
}

const TIERS: Readonly<Record<string, string>> = {
  ON_DEMAND: 'default',
  ON_DEMAND_FLEX: 'flex',
  ON_DEMAND_PRIORITY: 'priority',
  standard: 'default',
  flex: 'flex',
  priority: 'priority',
}

/** The served tier in the words of our clients, from either surface's field; undefined for what they have no word for. */
export function tierOf(report: unknown): string | undefined {
  if (!isObject(report)) return undefined
  const told = String(report.trafficType ?? report.serviceTier)
  return Object.hasOwn(TIERS, told) ? TIERS[told] : undefined
}
