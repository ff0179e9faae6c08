/** Estimates the cost of an attempt at the highest price that can apply. */

import { costOf } from '../core/cost.ts'
import type { Exchange } from '../core/exchange.ts'
import { IMAGE_TOKENS, LARGE_IMAGE_TOKENS } from '../core/media.ts'
import { MILLION, type Money, type Price, type Rates, ratesFor, type Terms, tierFactorOf } from '../core/money.ts'
import { type Axis, MAX_OUTPUT_TOKENS, type Usage } from '../core/usage.ts'
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
  const { isWritten, output, least, limitable } = boundsOf(ex)
  const extras = extrasOf(ex)
  const usage = wholePrompt(ex)
  for (const axis in extras) {
    // Below, all tokens of an answer count.
    if (!output || !ofAnswer.has(axis)) usage[axis as Axis] = extras[axis as Axis]!
  }
  const rates = ratesFor(price, longestOf(ex, usage))
  // Images that cost by their tokens are a part of the answer's.
  const pricedImages = price.perImage || rates.image_output === undefined ? 0 : (usage.output_images ?? 0)
  if (pricedImages > 0) usage.output_images = 0
  const terms = termsFor(ex, usage, price)
  const base = costOf(usage, price, terms)?.total
  if (base === undefined) return null
  const unmeasured = unmeasuredCost(ex, usage, price, base)
  if (!output) return { base, unmeasured, perMillion: 0n, choices: 1, most: 0, least, ofImages: 0, limitable }
  const { choices, limit } = output
  const images = extras.output_images ?? 0
  const ofImages = isWritten ? Math.ceil(images / choices) * LARGE_IMAGE_TOKENS : 0
  const drawsOnly = images > 0 && !writesText(ex)
  const unknown = drawsOnly ? images * MAX_IMAGE_TOKENS : MAX_OUTPUT_TOKENS
  // Only a caller may set a limit beyond the context.
  const ceiling = mapping.maxOutput ?? (isWritten ? mapping.contextLength : undefined) ?? unknown
  const most = Math.max(Math.min(limit ?? ceiling, ceiling), Math.ceil((pricedImages * IMAGE_TOKENS) / choices))
  // Without a rate for answers, the rest must have a price by itself.
  if (rates.completion === undefined) {
    const others = (drawsOnly || !isWritten) && { image_output: most, output_audio: most }
    if (!costOf({ ...usage, completion: most, ...others }, price, terms)) return null
  }
  const ofTokens = perMillion(price, dearest(rates, mapping.model.output, extras), terms)
  return { base, unmeasured, perMillion: ofTokens, choices, most, least, ofImages, limitable }
}

/**
 * Finds what bounds an answer: the limit that is sent, else that of its request, else what such answers usually have.
 * `isWritten`: the request sets the number of choices. `output`: undefined when nothing bounds the tokens of the answer.
 */
function boundsOf(ex: Exchange) {
  const { operation, target, outbound } = ex
  const written = target!.translator.bridged ? undefined : operation.output?.(ex.request!)
  const sent = outbound.output
  const expected = sent || written ? undefined : operation.expectedOutput?.(ex.request!, target!.mapping)
  const bound = sent ?? expected
  const limit = bound?.limit ?? written?.limit
  const choices = (written?.choices ?? requestsOf(ex)) * (sent?.limits ?? 1)
  return {
    isWritten: written !== undefined,
    output: written || limit !== undefined ? { choices, limit } : undefined,
    least: bound?.least ?? 0,
    limitable: !expected && sent?.limit !== Number.POSITIVE_INFINITY,
  }
}

/** Returns what content of unknown size may cost beside `base`. */
function unmeasuredCost(ex: Exchange, usage: Usage, price: Price, base: Money): Money {
  const all = withUnmeasured(ex, usage)
  if (all === usage) return 0n
  addCacheWrite(ex, all)
  return costOf(all, price, termsFor(ex, all, price))!.total - base
}

/** Axes that an answer's tokens are counted in. */
const ofAnswer: ReadonlySet<string> = new Set(['completion', 'image_output', 'output_audio'])

/** Tokens of the prompt of each request to the target. */
const longestOf = (ex: Exchange, { prompt = 0 }: Usage): number => prompt / repeatsOf(ex)

/** At the tier that is asked for; or at the usual one, where that is dearer: it may be the one that is served. */
function termsFor(ex: Exchange, usage: Usage, price: Price): Terms {
  const { tier, sizes } = ex.operation.terms?.(ex.request!) ?? {}
  const isCheaper = tierFactorOf(price, { tier }) < MILLION
  const requests = { count: requestsOf(ex), longest: longestOf(ex, usage) }
  return { tier: isCheaper ? undefined : tier, sizes, requests }
}

/** Whatever the tokens of the answer turn out to be. */
function dearest(rates: Rates, output: readonly string[], extras: Usage): bigint {
  const {
    completion = 0n,
    internal_reasoning: thought = 0n,
    image_output: image = 0n,
    output_audio: audio = 0n,
  } = rates
  let rate = thought > completion ? thought : completion
  if (image > rate && output.includes('image')) rate = image
  if (audio > rate && (output.includes('audio') || extras.output_audio !== undefined)) rate = audio
  return rate
}

function perMillion(price: Price, rate: bigint, terms: Terms): Money {
  const { discount = 0 } = price
  const factor = tierFactorOf(price, terms)
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
