/** Estimates the cost of an attempt at the highest price that can apply. */

import { costOf } from '../core/cost.ts'
import type { Exchange } from '../core/exchange.ts'
import { IMAGE_TOKENS, LARGE_IMAGE_TOKENS } from '../core/media.ts'
import { MILLION, type Money, type Price, type Rates, ratesFor, type Terms, tierFactorOf } from '../core/money.ts'
import type { Operation } from '../core/operation.ts'
import { type Axis, MAX_OUTPUT_TOKENS, type Usage } from '../core/usage.ts'
import type { SentOutput } from '../core/wire.ts'
import { addCacheWrite, wholePrompt } from './prompt.ts'
import { extrasOf, repeatsOf, requestsOf, withUnmeasured, writesText } from './requests.ts'

/** The cost of an attempt as a function of its answer's tokens; see `costWith` and `tokensWithin`. */
export interface Estimate {
  /** Cost of the prompt and of everything except tokens of the answer; nano-USD. */
  readonly base: Money
  /** Possible cost of content of unknown size, in nano-USD. */
  readonly unmeasured: Money
  /** Price of a million tokens of the answer, in nano-USD. */
  readonly perMillion: Money
  /** Each of them twice where its reasoning has a limit of its own. */
  readonly choices: number
  /** Tokens that each of these may have. */
  readonly most: number
  /** Tokens of each choice without which an answer is of no use; 0 where nothing is said of that. */
  readonly least: number
  /** Tokens of the images that each choice may hold beside its text. */
  readonly ofImages: number
  /** A lower limit can be sent. */
  readonly limitable: boolean
}

/** Tokens of the most expensive image of any model (docs/money.md#media-prices). */
const MAX_IMAGE_TOKENS = 25_000

/** Null when the request uses something without a known price. */
export function estimate(ex: Exchange): Estimate | null {
  const { mapping, price } = ex.target!
  if (!price) return null
  const request = ex.request!
  const { operation } = ex
  const written = ex.target!.translator.bridged ? undefined : operation.output?.(request)
  const sent = ex.outbound.output
  const expected = sent || written ? undefined : operation.expectedOutput?.(request, mapping)
  const output = written ?? outputOf(ex, sent ?? expected)
  const extras = extrasOf(ex)
  const usage = wholePrompt(ex)
  for (const axis in extras) {
    // Below, all tokens of an answer count.
    if (!output || !ofAnswer.has(axis)) usage[axis as Axis] = extras[axis as Axis]!
  }
  const rates = ratesFor(price, longestOf(ex, usage))
  // Images that cost by their tokens are a part of the answer's.
  const outputImages = price.perImage || rates.image_output === undefined ? 0 : (usage.output_images ?? 0)
  if (outputImages > 0) usage.output_images = 0
  const asked = operation.terms?.(request)
  const terms = termsFor(ex, asked, usage)
  const base = dearestCost(usage, price, terms)
  if (base === null) return null
  const all = withUnmeasured(ex, usage)
  if (all !== usage) addCacheWrite(ex, all)
  const unmeasured = all === usage ? 0n : dearestCost(all, price, termsFor(ex, asked, all))! - base
  const limitable = !expected && sent?.limit !== Number.POSITIVE_INFINITY
  const least = (sent ?? expected)?.least ?? 0
  if (!output) return { base, unmeasured, perMillion: 0n, choices: 1, most: 0, least, ofImages: 0, limitable }
  const choices = output.choices * (sent?.limits ?? 1)
  const limit = sent?.limit ?? output.limit
  // Only a caller may set a limit beyond it.
  const context = written && mapping.contextLength
  const images = extras.output_images ?? 0
  const ofImages = written ? Math.ceil(images / choices) * LARGE_IMAGE_TOKENS : 0
  const drawsOnly = images > 0 && !writesText(ex)
  const unknown = drawsOnly ? images * MAX_IMAGE_TOKENS : MAX_OUTPUT_TOKENS
  const ceiling = mapping.maxOutput ?? context ?? unknown
  const most = Math.max(Math.min(limit ?? ceiling, ceiling), Math.ceil((outputImages * IMAGE_TOKENS) / choices))
  // Without a rate for answers, the rest must have a price by itself.
  if (rates.completion === undefined) {
    const others = (drawsOnly || !written) && { image_output: most, output_audio: most }
    const all = { ...usage, completion: most, ...others }
    if (!costOf(all, price, terms)) return null
  }
  const factor = tierFactorOf(price, terms)
  // See `dearestCost`.
  const ofTokens = perMillion(price, dearest(rates, mapping.model.output, extras), factor < MILLION ? MILLION : factor)
  return { base, unmeasured, perMillion: ofTokens, choices, most, least, ofImages, limitable }
}

/** Axes that an answer's tokens are counted in. */
const ofAnswer: ReadonlySet<string> = new Set(['completion', 'image_output', 'output_audio'])

/** Returns the assumed output of answers without a caller's limit; undefined when nothing bounds them. */
function outputOf(
  ex: Exchange,
  bound: SentOutput | undefined,
): ReturnType<NonNullable<Operation['output']>> | undefined {
  const limit = bound?.limit
  return limit === undefined ? undefined : { choices: requestsOf(ex), limit }
}

/** Tokens of the prompt of each request to the target. */
const longestOf = (ex: Exchange, { prompt = 0 }: Usage): number => prompt / repeatsOf(ex)

const termsFor = (ex: Exchange, asked: Terms | undefined, usage: Usage): Terms => ({
  tier: asked?.tier,
  sizes: asked?.sizes,
  requests: { count: requestsOf(ex), longest: longestOf(ex, usage) },
})

/** At the tier of the terms; or at the usual one, where that is dearer: it may be the one that is served. */
function dearestCost(usage: Usage, price: Price, terms: Terms): Money | null {
  const cost = costOf(usage, price, tierFactorOf(price, terms) < MILLION ? { ...terms, tier: undefined } : terms)
  return cost?.total ?? null
}

/** Whatever the tokens of the answer turn out to be. */
function dearest(rates: Rates, output: readonly string[], extras: Usage): bigint {
  const {
    completion = 0n,
    internal_reasoning: thought = 0n,
    image_output: imageRate = 0n,
    output_audio: audioRate = 0n,
  } = rates
  let rate = thought > completion ? thought : completion
  if (imageRate > rate && output.includes('image')) rate = imageRate
  if (audioRate > rate && (output.includes('audio') || extras.output_audio !== undefined)) rate = audioRate
  return rate
}

function perMillion({ discount = 0 }: Price, rate: bigint, factor: bigint): Money {
  if (factor === MILLION && discount === 0) return rate * 1000n
  // Pico-USD per token are micro-USD per million: a thousand nano-USD.
  return (rate * 1000n * factor * (MILLION - BigInt(discount))) / (MILLION * MILLION)
}

/** Returns the cost of an answer with so many tokens in all choices. */
export const costWith = ({ base, perMillion }: Estimate, tokens: number): Money =>
  base + (perMillion * BigInt(Math.ceil(tokens)) + MILLION - 1n) / MILLION

/** The most tokens, all choices together, that `amount` pays for; Infinity where they cost nothing. */
export function tokensWithin({ base, perMillion }: Estimate, amount: Money): number {
  if (perMillion === 0n) return Number.POSITIVE_INFINITY
  return amount > base ? Number(((amount - base) * MILLION) / perMillion) : 0
}
