/** Token counts of the wire as usage axes. */
import { countIn, isObject, type Json, textIn, type Usage } from '../../src/plugin.ts'
import { type Counts, UsageReports, withCache } from '../shared/usage-reports.ts'

const count = (value: unknown): number => countIn(value) ?? 0

/**
 * Counts arrive with every chunk, and a later report may lower an earlier one: the last applies. So output counts are
 * reported at the end, and until then as progress; the prompt's do not change and are reported at once.
 */
export class UsageMeter {
  readonly #reports = new UsageReports(countsOf, usageOf)
  #last: Usage | undefined
  #toldPrompt = 0
  #toldCompletion = 0

  /** Adds a `usageMetadata`; returns the final part of it, if that is new. */
  add(report: unknown): Usage | undefined {
    // Some reports contain only the service tier.
    if (!isObject(report) || typeof (report.promptTokenCount ?? report.totalTokenCount) !== 'number') return undefined
    const usage = this.#reports.add(report)!
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

const countsOf = (report: Json) => ({
  prompt: countIn(report.promptTokenCount),
  tools: countIn(report.toolUsePromptTokenCount),
  cached: countIn(report.cachedContentTokenCount),
  candidates: countIn(report.candidatesTokenCount),
  thoughts: countIn(report.thoughtsTokenCount),
  inputAudio: ofModality(report.promptTokensDetails, 'AUDIO'),
  inputVideo: ofModality(report.promptTokensDetails, 'VIDEO'),
  cachedAudio: ofModality(report.cacheTokensDetails, 'AUDIO'),
  imageOutput: ofModality(report.candidatesTokensDetails, 'IMAGE'),
  outputAudio: ofModality(report.candidatesTokensDetails, 'AUDIO'),
})

/** The wire counts thoughts separately from the answer, and results of its own tools separately from the prompt. */
function usageOf(counts: Counts<keyof ReturnType<typeof countsOf>>): Partial<Usage> {
  const { cached = 0, thoughts = 0 } = counts
  const usage: Partial<Usage> = {
    prompt: withCache((counts.prompt ?? 0) + (counts.tools ?? 0), cached, 0).prompt,
    completion: (counts.candidates ?? 0) + thoughts,
  }
  if (cached > 0) usage.input_cache_read = cached
  if (thoughts > 0) usage.internal_reasoning = thoughts
  if (counts.inputAudio) usage.input_audio = counts.inputAudio
  if (counts.inputVideo) usage.input_video = counts.inputVideo
  if (counts.cachedAudio) usage.input_audio_cache_read = counts.cachedAudio
  if (counts.imageOutput) usage.image_output = counts.imageOutput
  if (counts.outputAudio) usage.output_audio = counts.outputAudio
  return usage
}

/** Tokens of one kind, such as `IMAGE`, in a list of counts by kind. */
export function ofModality(details: unknown, modality: string): number | undefined {
  if (!Array.isArray(details)) return undefined
  let sum = 0
  for (const detail of details) {
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
