/** Integer money. Amounts are nano-USD, rates pico-USD per unit; floats appear only when a client is shown a number. */
import { atLeastZero, count, HOUR_MS, isUnknown, MS_PER_SECOND, rateOf } from './counted.ts'
import type { Axis, Usage } from './usage.ts'

/** An amount of nano-USD (10⁻⁹ USD). A bigint, so that neither NaN nor a fraction can enter the ledger. */
export type Money = bigint
/** Pico-USD (10⁻¹² USD) per unit of an axis. */
export type Rates = Readonly<Partial<Record<Axis, bigint>>>

/** Pico-USD by size or quality, such as `1080p`; `default` stands for those that are not named. */
export type RatesBySize = Readonly<Record<string, bigint>>

/** A price list. `tiers` replace single rates for prompts longer than `above` tokens, in ascending order. */
export interface Price {
  readonly rates: Rates
  readonly tiers: readonly { readonly above: number; readonly rates: Rates }[]
  /** For each second, and for each image of the answer. */
  readonly perSecond?: RatesBySize | undefined
  readonly perImage?: RatesBySize | undefined
  /** Factors of service tiers on token rates, in millionths; a tier that is not named costs the same. */
  readonly tierFactors?: Readonly<Record<string, bigint>> | undefined
  /** Discount on all rates, in millionths. */
  readonly discount?: number | undefined
}

/** Facts that change the price of an answer besides its usage. */
export interface Terms {
  /** The service tier that was served. */
  readonly tier?: string | undefined
  /** Keys into prices by size; the first that is known counts. */
  readonly sizes?: readonly string[] | undefined
  /** Number of requests in the usage; one when absent. */
  readonly requests?: Requests | undefined
}

/** Several requests that stand for one: each is charged for, and none has the rates of their prompts' sum. */
export interface Requests {
  readonly count: number
  /** Tokens of the longest prompt; absent where only their sum is known. */
  readonly longest?: number
}

/** Cost of one request, by part; the parts before `total` sum to it. */
export interface Cost {
  readonly input: Money
  readonly cachedInput: Money
  readonly cacheWrite: Money
  readonly output: Money
  readonly request: Money
  readonly webSearch: Money
  readonly total: Money
  /** Shares that `input` and `output` already hold. */
  readonly imageInput: Money
  readonly audioInput: Money
  readonly imageOutput: Money
}

const PICO_PER_NANO = 1000n

/** `"2.5"` with 9 places → 2_500_000_000n. Throws a RangeError for what is not a plain non-negative decimal. */
export function parseDecimal(text: string, places: number): bigint {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(text)
  if (!match) throw new RangeError(`"${text}" is not a decimal number`)
  const fraction = (match[2] ?? '').replace(/(?<!0)0+$/, '')
  if (fraction.length > places) throw new RangeError(`"${text}" has more than ${places} decimal places`)
  return BigInt(match[1]! + fraction.padEnd(places, '0'))
}

/** The inverse: 2_500_000_000n with 9 places → `"2.5"`. */
export function formatDecimal(value: bigint, places: number): string {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(places + 1, '0')
  const fraction = digits.slice(digits.length - places).replace(/(?<!0)0+$/, '')
  return `${negative ? '-' : ''}${digits.slice(0, digits.length - places)}${fraction && `.${fraction}`}`
}

/** USD with at most nine decimal places, such as `"2.5"`, to nano-USD. Throws a RangeError, as `parseDecimal` does. */
export const parseMoney = (usd: string): Money => parseDecimal(usd, 9)
/** Nano-USD to USD without trailing zeros, such as `"2.5"`; exact, and negative amounts have a sign. */
export const formatMoney = (amount: Money): string => formatDecimal(amount, 9)
/** USD as a number, for JSON answers only. */
export const toNumber = (amount: Money): number => Number(amount) / 1e9

/** The rates that apply to a prompt of so many tokens. */
export function ratesFor(price: Price, promptTokens: number): Rates {
  let rates = price.rates
  for (const tier of price.tiers) if (promptTokens > tier.above) rates = tier.rates
  return rates
}

/** One, in millionths: what factors and discounts are counted in. */
export const MILLION = 1_000_000n

/** Returns the factor of a service tier on token rates, in millionths. */
export const tierFactorOf = ({ tierFactors }: Price, { tier = '' }: Terms): bigint =>
  tierFactors && Object.hasOwn(tierFactors, tier) ? tierFactors[tier]! : MILLION

/** Most requests count nothing of most rates: a product that is zero costs no multiplication, which allocates. */
const times = (count: bigint, rate: bigint | undefined, scale: bigint): bigint =>
  count === 0n || !rate ? 0n : count * rate * scale

/** Holds two factors in millionths, and milliseconds of an hour, without a remainder. */
const FINE = MILLION * MILLION * HOUR_MS

/**
 * Computes the cost of `usage` at `price`; null when a needed rate is unknown. Formula: docs/money.md#cost. Audio and
 * images of an answer at token rates count as tokens. Every part is exact. Only the running sum is rounded, so parts
 * always add up to the total.
 */
export function costOf(usage: Usage, price: Price | undefined, terms: Terms = {}): Cost | null {
  if (!price) return null
  const rates = ratesFor(price, terms.requests?.longest ?? usage.prompt ?? 0)
  const counted = count(usage, rates, price, terms.requests?.count)
  const perSecond = rateOf(price.perSecond, terms)
  const perImage = rateOf(price.perImage, terms)
  if (isUnknown(counted, rates, perSecond, perImage)) return null

  const { prompt, completion, read, readAudio, write5m, write1h, thinking } = counted
  const promptRate = rates.prompt ?? 0n
  const completionRate = rates.completion ?? 0n
  const readRate = rates.input_cache_read ?? promptRate
  const text = atLeastZero(prompt - read - write5m - write1h - counted.audioInput - counted.imageInput)
  const written = atLeastZero(completion - thinking - counted.imageOutput - counted.audioOutput)

  const { discount = 0 } = price
  const tierFactor = tierFactorOf(price, terms)
  const plain = discount === 0 && tierFactor === MILLION && counted.hours === 0n && counted.seconds === 0n
  const left = plain ? 1n : (MILLION - BigInt(discount)) * MILLION * HOUR_MS
  const tokens = plain ? 1n : (left / MILLION) * tierFactor
  const unit = plain ? PICO_PER_NANO : PICO_PER_NANO * FINE
  let exact = 0n
  let rounded = 0n
  const part = (amount: bigint): Money => {
    if (amount === 0n) return 0n
    exact += amount
    const total = (exact + unit / 2n) / unit
    const share = total - rounded
    rounded = total
    return share
  }
  const imageInput =
    part(times(counted.images, rates.image, left)) + part(times(counted.imageInput, rates.image_input, tokens))
  const audioInput =
    part(times(counted.audioInput, rates.input_audio, tokens)) +
    part(times(counted.hours, rates.input_audio_hour, left / HOUR_MS))
  const pages = part(
    times(counted.pages, rates.ocr_page, left) + times(counted.annotated, rates.ocr_page_annotated, left),
  )
  const plainInput = part(times(text, promptRate, tokens))
  const cachedInput = part(
    times(read - readAudio, readRate, tokens) + times(readAudio, rates.input_audio_cache_read, tokens),
  )
  const rate1h = rates.input_cache_write_1h ?? rates.input_cache_write ?? 0n
  const cacheWrite = part(times(write5m, rates.input_cache_write, tokens) + times(write1h, rate1h, tokens))
  const imageOutput =
    part(perImage === undefined ? times(counted.imageOutput, rates.image_output, tokens) : 0n) +
    part(times(counted.outputImages, perImage, left))
  const footage = part(times(counted.seconds, perSecond, left / MS_PER_SECOND))
  const plainOutput = part(
    times(written, completionRate, tokens) +
      times(thinking, rates.internal_reasoning, tokens) +
      times(counted.audioOutput, rates.output_audio ?? completionRate, tokens),
  )
  const request = part(times(counted.requests, rates.request, left))
  const webSearch = part(times(counted.searches, rates.web_search, left))
  return {
    input: imageInput + audioInput + pages + plainInput,
    cachedInput,
    cacheWrite,
    output: imageOutput + footage + plainOutput,
    request,
    webSearch,
    total: rounded,
    imageInput,
    audioInput,
    imageOutput,
  }
}

/** The cost of a replay from the response cache. */
export const noCost: Cost = {
  input: 0n,
  cachedInput: 0n,
  cacheWrite: 0n,
  output: 0n,
  request: 0n,
  webSearch: 0n,
  total: 0n,
  imageInput: 0n,
  audioInput: 0n,
  imageOutput: 0n,
}
