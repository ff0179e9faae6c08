/** Judges reports of usage: one that the answer to its request cannot have caused is a mistake that its payer would pay. */
import type { Exchange } from '../core/exchange.ts'
import { type Axis, axes, MAX_OUTPUT_TOKENS, mergeUsage, type Usage } from '../core/usage.ts'
import { wholePrompt } from './prompt.ts'
import { extrasOf } from './requests.ts'

/** Expected usage that a report is compared with. It comes from the request, not from the provider. */
export interface Expected {
  /** Usage of the prompt with its media, and of other work that the request may cause. */
  readonly usage: Usage
  /** Tokens of the longest prompt that the model reads; 0 where that is unknown. */
  readonly longest: number
  /** Tokens that all choices together may have; 0 where answers have no limit in tokens. */
  readonly written: number
  /** The provider may run tools by itself, and read all again after each. A search among the usage says the same. */
  readonly loops?: boolean
}

/** Maximum factor by which an estimate is too low: rare scripts, some models' images, rounds of a provider's tools. */
const MAX_FACTOR = 32
/** Maximum factor for hours of audio. A second of silence takes 25 bytes, but is estimated at 8,000. */
const MAX_HOURS_FACTOR = 320
/** Tokens that need no reason: providers add to prompts, and think. */
const UNCHECKED_TOKENS = 32_768

const read = ['prompt', 'input_cache_read', 'input_cache_write', 'input_cache_write_1h', 'image_input'] as const
const recorded = ['input_audio', 'input_audio_cache_read', 'input_video'] as const
const written = ['completion', 'internal_reasoning', 'image_output', 'output_audio'] as const
const counted = ['request', 'web_search', 'image', 'output_images'] as const

/** Beyond this an axis is looked at closely. Pages and seconds are bounded where they are decoded. */
const small: Usage = {}
for (const axis of [...read, ...recorded, ...written]) small[axis] = UNCHECKED_TOKENS
for (const axis of counted) small[axis] = MAX_FACTOR
small.input_audio_hour = 1

/** Without a report, nothing stands for these: the bound is charged of more than a request for them can cause. */
const units: ReadonlySet<Axis> = new Set(['request', 'web_search', 'input_audio_hour'])

/**
 * A report without its axes that are not plausible, except units that the request asks for; the same one where all are
 * plausible.
 */
export function plausible(report: Partial<Usage>, expect: () => Expected): Partial<Usage> {
  for (const axis in report) {
    if (report[axis as Axis]! > (small[axis as Axis] ?? Number.POSITIVE_INFINITY)) return within(report, expect())
  }
  return report
}

function within(report: Partial<Usage>, { usage, longest, written: limit, loops }: Expected): Partial<Usage> {
  const rounds = loops || (usage.web_search ?? 0) > 0 ? MAX_FACTOR : 1
  const most: Usage = {}
  for (const axis of counted) most[axis] = MAX_FACTOR * Math.max(1, usage[axis] ?? 0)
  most.input_audio_hour = Math.max(1, MAX_HOURS_FACTOR * (usage.input_audio_hour ?? 0))
  const estimated = MAX_FACTOR * (usage.prompt ?? 0)
  // No round reads more than the model can, where that is known.
  const round = Math.max(UNCHECKED_TOKENS, longest, rounds > 1 && longest > 0 ? 0 : estimated)
  const prompt = Math.max(rounds * round, estimated)
  for (const axis of [...read, ...recorded]) most[axis] = prompt
  const completion = Math.max(
    UNCHECKED_TOKENS * (1 + (usage.output_images ?? 0)),
    limit,
    MAX_FACTOR * (usage.completion ?? 0),
  )
  for (const axis of written) most[axis] = completion
  if (!axes.some(axis => report[axis]! > (most[axis] ?? Number.POSITIVE_INFINITY))) return report
  const kept: Usage = {}
  for (const axis of axes) {
    const value = report[axis]
    const bound = most[axis] ?? Number.POSITIVE_INFINITY
    if (value === undefined) continue
    if (value <= bound) kept[axis] = value
    else if (units.has(axis) && usage[axis] !== undefined) kept[axis] = bound
  }
  return kept
}

/** The expected usage of an exchange. It is made once for each target: a stream may report with each of its events. */
export class ExpectedUsage {
  readonly #ex: Exchange
  #known: (Pick<Exchange, 'target' | 'request'> & { readonly expected: Expected }) | undefined

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  readonly get = (): Expected => {
    const { target, request } = this.#ex
    const known = this.#known
    if (known && known.target === target && known.request === request) return known.expected
    const expected = expectedOf(this.#ex)
    this.#known = { target, request, expected }
    return expected
  }
}

function expectedOf(ex: Exchange): Expected {
  const { target, request, operation } = ex
  const { native } = ex.input
  const sent = ex.outbound.output
  const usage = wholePrompt(ex)
  if (request && target) mergeUsage(usage, extrasOf(ex))
  const output = request && operation.output?.(request)
  const { contextLength: longest = 0, maxOutput = longest || MAX_OUTPUT_TOKENS } = target?.mapping ?? {}
  // Without a limit an answer may go on to the end of the context, even beyond the model's known maximum.
  const isBounded = sent?.limit !== Number.POSITIVE_INFINITY
  const most = isBounded ? maxOutput : Math.max(maxOutput, longest || MAX_OUTPUT_TOKENS)
  const loops = (native?.pages ?? 0) > 0 || native?.loops || (request && operation.loops?.(request))
  return {
    usage,
    longest,
    written: output ? most * output.choices * (sent?.limits ?? 1) : isBounded ? (sent?.limit ?? 0) : 0,
    loops: loops === true,
  }
}
