/**
 * Decides what an answer is charged for when it ends, whole, aborted, cut or failed: its provider's report, else what was
 * delivered plus the prompt's estimate, and for an estimate never more than was held.
 */

import { isPaidByTokens } from '../core/cost.ts'
import type { Exchange } from '../core/exchange.ts'
import { tokensOfImage } from '../core/media.ts'
import type { Cost, Money } from '../core/money.ts'
import { type Axis, MAX_OUTPUT_TOKENS, mergeUsage, type Usage } from '../core/usage.ts'
import { extrasOf, writesText } from './requests.ts'

/** Delivered content of an answer besides its reported usage, in tokens unless stated otherwise. */
export interface Delivered {
  readonly hasContent: boolean
  /** The last report of the completion, and text since then. */
  readonly textTokens: number
  /** The reasoning among `textTokens`. */
  readonly reasoningTokens: number
  /** Images that came in all, and those since the last report. */
  readonly images: number
  readonly newImages: number
  /** Text that the provider's own tools have read since the last report of the prompt. */
  readonly readTokens: number
  /** The provider's count of the answer so far, until it reports. */
  readonly progress: Partial<Usage> | undefined
  /** Usage of an answer of bytes, by their measure. */
  readonly bytesUsage: Usage | undefined
  /** Reports that were not plausible. */
  readonly implausible: ReadonlyMap<Axis, number>
  /** Held usage, which counts instead of reports that are not plausible. */
  readonly held: Usage
}

/** A report above 0 of one of these says that the provider has worked, also where it counts no tokens. */
const units = ['output_images', 'request', 'web_search', 'ocr_page', 'ocr_page_annotated', 'input_audio_hour'] as const

/** Parts of a prompt that are estimated with it. */
const ofPrompt = ['input_audio', 'input_cache_write', 'input_cache_write_1h'] as const

/**
 * Fills what no report says of `usage`, and of an answer that was `cut` adds what was delivered since the last report. Returns
 * whether anything was estimated.
 */
export function completeUsage(ex: Exchange, usage: Usage, delivered: Delivered, cut: boolean): boolean {
  if (cut && !delivered.hasContent && !ex.isOwed) {
    usage.prompt ??= 0
    usage.completion ??= 0
    return false
  }
  const isEstimated = fill(ex, usage, delivered, cut)
  if (delivered.implausible.size === 0) return isEstimated
  const { held } = delivered
  for (const axis of delivered.implausible.keys()) {
    if (held[axis] !== undefined) usage[axis] = Math.max(usage[axis] ?? 0, held[axis])
  }
  return true
}

function fill(ex: Exchange, usage: Usage, delivered: Delivered, cut: boolean): boolean {
  const price = ex.target?.price
  const { bytesUsage, images } = delivered
  const progress = usage.completion === undefined ? delivered.progress : undefined
  if (progress) mergeUsage(usage, progress)
  const isSilent = usage.completion === undefined && !units.some(axis => (usage[axis] ?? 0) > 0)
  if (images > 0) usage.output_images ??= images
  const isText = ex.operation.output !== undefined
  if (!isText && usage.completion === undefined && bytesUsage) {
    mergeUsage(usage, bytesUsage)
    usage.prompt ??= ex.prompt.usage.prompt!
    return true
  }
  const isAsked = !(isText && writesText(ex)) && addAsked(ex, usage, isSilent)
  if (!isText) {
    usage.completion ??= 0
    // Tokens that are not reported count as none where the price is not for tokens, and in a replay of what was so counted.
    if (price ? !isPaidByTokens(usage, price) : ex.answer.cached && !isSilent) {
      usage.prompt ??= 0
      return isAsked
    }
  }
  // Usage that follows from the request includes its images already.
  const ofImages = isAsked ? 0 : delivered.newImages * tokensOfImage(price)
  return fillTokens(ex, usage, delivered, { cut, ofImages }) || isAsked || progress !== undefined
}

/**
 * Fills the tokens of prompt and answer. Returns whether they were estimated. `ofImages`: tokens of the images since the last
 * report.
 */
function fillTokens(
  ex: Exchange,
  usage: Usage,
  { implausible, textTokens, readTokens, reasoningTokens, newImages }: Delivered,
  { cut, ofImages }: { readonly cut: boolean; readonly ofImages: number },
): boolean {
  const { rates } = ex.target?.price ?? {}
  const { prompt, completion } = usage
  // A report that was not plausible raises the estimate, up to the limit of the answer.
  const text = Math.min(Math.max(textTokens, implausible.get('completion') ?? 0), mostTokens(ex))
  const read = cut || implausible.has('prompt') ? readTokens : 0
  const isOpen = cut || implausible.has('completion')
  const isMore = completion === undefined || (isOpen && text + ofImages > completion)
  const isReported = prompt !== undefined && !isMore && read === 0
  // A client that leaves before the prompt is reported pays for no less than the provider may have read.
  const sent = isReported && rates?.image === undefined ? usage : ex.prompt.usage
  if (sent.image !== undefined) usage.image ??= sent.image
  if (isReported) return false
  if (prompt === undefined) for (const axis of ofPrompt) if (sent[axis] !== undefined) usage[axis] ??= sent[axis]
  usage.prompt = (prompt ?? sent.prompt!) + read
  if (!isMore) return true
  usage.completion = text + ofImages
  // Reasoning and images may have rates of their own: a completion that is not split counts as images alone.
  if (rates?.internal_reasoning !== undefined && reasoningTokens > 0) {
    const reasoning = Math.min(reasoningTokens, usage.completion)
    usage.internal_reasoning = Math.max(usage.internal_reasoning ?? 0, reasoning)
  }
  if (newImages > 0) usage.image_output = (usage.image_output ?? 0) + ofImages
  return true
}

/**
 * Adds the units that a request asks for whose answer is no text, where its provider may have made them and reports none.
 * Returns whether it did.
 */
function addAsked(ex: Exchange, usage: Usage, isSilent: boolean): boolean {
  if (ex.isOwed && isSilent) {
    mergeUsage(usage, extrasOf(ex))
    return true
  }
  // The images of an answer that passes a bound are not counted.
  if (ex.answer.failure?.excess === undefined || usage.output_images !== undefined) return false
  if (ex.target?.price?.perImage === undefined) return false
  usage.output_images = extrasOf(ex).output_images ?? 0
  return true
}

/** The most tokens of all choices together: by the limit that the provider was sent, and by its model's own. */
function mostTokens({ operation, request, target, outbound }: Exchange): number {
  if (!request || !target || !operation.output) return Number.POSITIVE_INFINITY
  const { choices, limit: asked = Number.POSITIVE_INFINITY } = operation.output(request)
  const sent = outbound.output?.limit ?? outbound.limit?.tokens
  if (sent === Number.POSITIVE_INFINITY) return sent
  const { maxOutput, contextLength } = target.mapping
  const limits = choices * (outbound.output?.limits ?? 1)
  return limits * Math.min(sent ?? asked, maxOutput ?? contextLength ?? MAX_OUTPUT_TOKENS)
}

/** Parts of a cost, in the order in which a limit takes from them. */
const parts = ['output', 'input', 'cacheWrite', 'cachedInput', 'webSearch', 'request'] as const

/** Limits the cost of an estimate to what was held; undefined bounds nothing. A plausible report is charged whole. */
export function limited(cost: Cost, most: Money | undefined): Cost {
  if (most === undefined || cost.total <= most) return cost
  const less = { ...cost, total: most }
  let over = cost.total - most
  for (const part of parts) {
    const taken = cost[part] < over ? cost[part] : over
    less[part] -= taken
    over -= taken
  }
  for (const share of ['imageInput', 'audioInput'] as const) if (less[share] > less.input) less[share] = less.input
  if (less.imageOutput > less.output) less.imageOutput = less.output
  return less
}
