/** Token counts of the wire as usage axes. */
import { countIn, isObject, type Json, listIn, textIn, type Usage } from '../../src/plugin.ts'

const count = (value: unknown): number => countIn(value) ?? 0

/**
 * Counts arrive with every chunk, and a later report may lower an earlier one: the last applies. So output counts are
 * reported at the end, and until then as progress; the prompt's do not change and are reported at once.
 */
export class UsageMeter {
  #last: Usage | undefined
  #toldPrompt = 0
  #toldCompletion = 0

  /** Adds a `usageMetadata`; returns the final part of it, if that is new. */
  add(report: unknown): Usage | undefined {
    // Some reports contain only the service tier.
    if (!isObject(report) || typeof (report.promptTokenCount ?? report.totalTokenCount) !== 'number') return undefined
    const usage = usageOf(report)
    this.#last = usage
    if (count(usage.prompt) <= this.#toldPrompt) return undefined
    this.#toldPrompt = count(usage.prompt)
    const { completion: _, internal_reasoning: _r, image_output: _i, output_audio: _o, ...asked } = usage
    return asked
  }

  /** Counts of the output so far, where they are others than the last time. */
  progress(): Usage | undefined {
    const { completion = 0, internal_reasoning, image_output, output_audio } = this.#last ?? {}
    if (completion === this.#toldCompletion) return undefined
    this.#toldCompletion = completion
    return {
      completion,
      ...(internal_reasoning !== undefined && { internal_reasoning }),
      ...(image_output !== undefined && { image_output }),
      ...(output_audio !== undefined && { output_audio }),
    }
  }

  /** All counts reported; undefined when there are none. */
  get total(): Usage | undefined {
    return this.#last
  }
}

/** The wire counts thoughts separately from the answer, and results of its own tools separately from the prompt. */
function usageOf(report: Json): Usage {
  const cached = count(report.cachedContentTokenCount)
  const thoughts = count(report.thoughtsTokenCount)
  const prompt = count(report.promptTokenCount) + count(report.toolUsePromptTokenCount)
  const usage: Usage = {
    // C37: more cached than read tokens means that the cache is counted separately.
    prompt: cached > prompt ? prompt + cached : prompt,
    completion: count(report.candidatesTokenCount) + thoughts,
  }
  if (cached > 0) usage.input_cache_read = cached
  if (thoughts > 0) usage.internal_reasoning = thoughts
  const inputAudio = ofModality(report.promptTokensDetails, 'AUDIO')
  if (inputAudio > 0) usage.input_audio = inputAudio
  const inputVideo = ofModality(report.promptTokensDetails, 'VIDEO')
  if (inputVideo > 0) usage.input_video = inputVideo
  const cachedAudio = ofModality(report.cacheTokensDetails, 'AUDIO')
  if (cachedAudio > 0) usage.input_audio_cache_read = cachedAudio
  const imageTokens = ofModality(report.candidatesTokensDetails, 'IMAGE')
  if (imageTokens > 0) usage.image_output = imageTokens
  const outputAudio = ofModality(report.candidatesTokensDetails, 'AUDIO')
  if (outputAudio > 0) usage.output_audio = outputAudio
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

/** The served tier in the API's terms, from either surface's field; undefined for tiers without an equivalent. */
export function tierOf(report: unknown): string | undefined {
  if (!isObject(report)) return undefined
  const tier = textIn(report.trafficType ?? report.serviceTier) ?? ''
  return Object.hasOwn(TIERS, tier) ? TIERS[tier] : undefined
}
