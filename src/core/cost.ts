/** Computes the cost of usage at a price. Each rate counts its own units. */
import {
  type Cost,
  MILLION,
  type Money,
  type Price,
  type Rates,
  type RatesBySize,
  ratesFor,
  type Terms,
  tierFactorOf,
} from './money.ts'
import type { Usage } from './usage.ts'

/** Tokens of an image of unknown size (docs/money.md#cost). */
const IMAGE_TOKENS = 1120n
/** Milliseconds of an hour. */
const HOUR_MS = 3_600_000n
/** Milliseconds of a second. */
const MS_PER_SECOND = 1000n
const PICO_PER_NANO = 1000n

const units = (n: number | undefined): bigint => (n === undefined || !(n > 0) ? 0n : BigInt(Math.round(n)))
/** `n`, or 0 where it is negative. */
const atLeastZero = (n: bigint): bigint => (n > 0n ? n : 0n)
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)

/** Usage in whole units, as far as it has a rate of its own: what has none stays in the plain prompt or completion. */
interface Counted {
  readonly prompt: bigint
  readonly completion: bigint
  /** Read from a cache; `readAudio` of it at a rate of its own. */
  readonly read: bigint
  readonly readAudio: bigint
  readonly write5m: bigint
  readonly write1h: bigint
  readonly images: bigint
  /** Tokens of images in the prompt, where those have a rate of their own. */
  readonly imageInput: bigint
  /** Without what of it was cached. */
  readonly audioInput: bigint
  readonly thinking: bigint
  /** Tokens of images in the answer, and how many images those are. */
  readonly imageOutput: bigint
  readonly outputImages: bigint
  readonly audioOutput: bigint
  readonly requests: bigint
  readonly searches: bigint
  readonly pages: bigint
  /** Annotated pages, where those have a rate of their own. */
  readonly annotated: bigint
  /** In milliseconds. */
  readonly hours: bigint
  readonly seconds: bigint
}

/**
 * The units of an answer that a price list charges for, each token counted once: cached, audio and image tokens are
 * taken from the totals in which providers report them. `requests`: as many as a provider that counts none has had.
 */
function count(usage: Usage, rates: Rates, { perImage }: Price, requests = 1): Counted {
  const has = (rate: bigint | undefined, amount: number | undefined) => (rate === undefined ? 0n : units(amount))
  const completion = units(usage.completion)
  const outputImages = units(usage.output_images)
  const read = units(usage.input_cache_read)
  const audioInput = units(usage.input_audio)
  // Some wires do not report cached audio: audio and cached tokens beyond the prompt's count must overlap.
  const overlap = least(atLeastZero(read + audioInput - units(usage.prompt)), least(read, audioInput))
  const reported = least(units(usage.input_audio_cache_read), read)
  const cachedAudio = reported > overlap ? reported : overlap
  return {
    prompt: units(usage.prompt),
    completion,
    read,
    readAudio: rates.input_audio_cache_read === undefined ? 0n : cachedAudio,
    write5m: has(rates.input_cache_write, usage.input_cache_write),
    write1h: has(rates.input_cache_write_1h ?? rates.input_cache_write, usage.input_cache_write_1h),
    images: units(usage.image),
    imageInput: has(rates.image_input, usage.image_input),
    audioInput: rates.input_audio === undefined ? 0n : atLeastZero(audioInput - cachedAudio),
    thinking: has(rates.internal_reasoning, usage.internal_reasoning),
    imageOutput:
      rates.image_output === undefined && perImage === undefined
        ? 0n
        : usage.image_output === undefined && outputImages > 0n
          ? completion || outputImages * IMAGE_TOKENS
          : units(usage.image_output),
    outputImages,
    audioOutput: has(rates.output_audio, usage.output_audio),
    requests: usage.request === undefined ? BigInt(requests) : units(usage.request),
    searches: units(usage.web_search),
    pages: units(usage.ocr_page) + (rates.ocr_page_annotated === undefined ? units(usage.ocr_page_annotated) : 0n),
    annotated: has(rates.ocr_page_annotated, usage.ocr_page_annotated),
    hours: units((usage.input_audio_hour ?? 0) * Number(HOUR_MS)),
    seconds: units((usage.second ?? 0) * Number(MS_PER_SECOND)),
  }
}

/**
 * Tokens need their rates unless something else has a price: a page, an hour, a second, an image. What is counted by
 * those may as well be paid by tokens. A price of the request pays for the tokens where none of them has a price, and
 * for those of images. A search is paid by itself.
 */
function isUnknown(
  { prompt, completion, imageOutput, audioOutput, pages, annotated, hours, seconds, outputImages, searches }: Counted,
  rates: Rates,
  perSecond: bigint | undefined,
  perImage: bigint | undefined,
): boolean {
  if (searches > 0n && rates.web_search === undefined) return true
  const byToken = rates.prompt !== undefined || rates.completion !== undefined
  const byRequest = rates.request !== undefined && (outputImages > 0n || !byToken)
  const byUnit =
    (pages > 0n && rates.ocr_page !== undefined) ||
    (annotated > 0n && rates.ocr_page_annotated !== undefined) ||
    (hours > 0n && rates.input_audio_hour !== undefined) ||
    (seconds > 0n && perSecond !== undefined) ||
    (outputImages > 0n && perImage !== undefined)
  if (byRequest || byUnit) return false
  // Images and audio have rates of their own, or that of the rest.
  const written = completion - audioOutput - (rates.image_output === undefined ? 0n : imageOutput)
  if ((prompt > 0n && rates.prompt === undefined) || (written > 0n && rates.completion === undefined)) return true
  if (prompt > 0n || completion > 0n) return false
  return pages + annotated > 0n || hours > 0n || seconds > 0n || (outputImages > 0n && rates.image_output === undefined)
}

/** Finds the rate for the requested sizes: the first size with a rate, else the default, else the most expensive. */
function rateOf(rates: RatesBySize | undefined, { sizes = [] }: Terms): bigint | undefined {
  if (!rates) return undefined
  const size = sizes.find(name => Object.hasOwn(rates, name)) ?? 'default'
  if (Object.hasOwn(rates, size)) return rates[size]
  return Object.values(rates).reduce((most, rate) => (rate > most ? rate : most), 0n)
}

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

/** Whether the tokens of `usage` are what it costs: some have a price, and nothing of it that is no token has one. */
export const isPaidByTokens = (usage: Usage, price: Price): boolean =>
  (price.rates.prompt !== undefined || price.rates.completion !== undefined) && !isPaidByUnit(usage, price)

const isPaidByUnit = (usage: Usage, { rates, perSecond, perImage }: Price): boolean =>
  unitAxes.some(axis => rates[axis] !== undefined && (usage[axis] ?? 0) > 0) ||
  (perSecond !== undefined && (usage.second ?? 0) > 0) ||
  (perImage !== undefined && usage.output_images !== undefined)
const unitAxes = ['request', 'ocr_page', 'ocr_page_annotated', 'input_audio_hour'] as const
