/** Integer money. Amounts are nano-USD, rates pico-USD per unit; floats appear only when a client is shown a number. */
import type { Axis, Usage } from './usage.ts'

/** An amount of nano-USD (10⁻⁹ USD). A bigint, so that neither NaN nor a fraction can enter the ledger. */
export type Money = bigint
/** Pico-USD (10⁻¹² USD) per unit of an axis. */
type Rates = Readonly<Partial<Record<Axis, bigint>>>

/** A price list. `tiers` replace single rates for prompts longer than `above` tokens, in ascending order. */
export interface Price {
  readonly rates: Rates
  readonly tiers: readonly { readonly above: number; readonly rates: Rates }[]
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
  const fraction = (match[2] ?? '').replace(/0+$/, '')
  if (fraction.length > places) throw new RangeError(`"${text}" has more than ${places} decimal places`)
  return BigInt(match[1]! + fraction.padEnd(places, '0'))
}

/** The inverse: 2_500_000_000n with 9 places → `"2.5"`. */
export function formatDecimal(value: bigint, places: number): string {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(places + 1, '0')
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '')
  return `${negative ? '-' : ''}${digits.slice(0, digits.length - places)}${fraction && `.${fraction}`}`
}

export const parseMoney = (usd: string): Money => parseDecimal(usd, 9)
export const formatMoney = (amount: Money): string => formatDecimal(amount, 9)
/** USD as a number, for JSON answers only. */
export const toNumber = (amount: Money): number => Number(amount) / 1e9

const units = (n: number | undefined): bigint => (n === undefined || !(n > 0) ? 0n : BigInt(Math.round(n)))
const atLeastZero = (n: bigint): bigint => (n > 0n ? n : 0n)

/** The rates that apply to a prompt of so many tokens. */
function ratesFor(price: Price, promptTokens: number): Rates {
  let rates = price.rates
  for (const tier of price.tiers) if (promptTokens > tier.above) rates = tier.rates
  return rates
}

/**
 * What `usage` costs at `price`, or null when a rate that it needs is unknown. Formula: field notes section 5.
 * Every part is exact in pico-USD; the one rounding is that of the running sum, so parts always sum to the total.
 */
export function costOf(usage: Usage, price: Price | undefined): Cost | null {
  if (!price) return null
  const rates = ratesFor(price, usage.prompt ?? 0)
  const prompt = units(usage.prompt)
  const completion = units(usage.completion)
  if ((prompt > 0n && rates.prompt === undefined) || (completion > 0n && rates.completion === undefined)) {
    if (rates.request === undefined) return null
  }
  const promptRate = rates.prompt ?? 0n
  const completionRate = rates.completion ?? 0n

  const read = units(usage.input_cache_read)
  const write5m = rates.input_cache_write === undefined ? 0n : units(usage.input_cache_write)
  const rate1h = rates.input_cache_write_1h ?? rates.input_cache_write
  const write1h = rate1h === undefined ? 0n : units(usage.input_cache_write_1h)
  const image = rates.image === undefined ? 0n : units(usage.image)
  const audio = rates.input_audio === undefined ? 0n : units(usage.input_audio)
  const text = atLeastZero(prompt - read - write5m - write1h - audio)
  const thinking = rates.internal_reasoning === undefined ? 0n : units(usage.internal_reasoning)
  const drawn = rates.image_output === undefined ? 0n : units(usage.image_output)
  const spoken = rates.output_audio === undefined ? 0n : units(usage.output_audio)
  const written = atLeastZero(completion - thinking - drawn - spoken)

  let exact = 0n
  let rounded = 0n
  const part = (pico: bigint): Money => {
    exact += pico
    const total = (exact + PICO_PER_NANO / 2n) / PICO_PER_NANO
    const share = total - rounded
    rounded = total
    return share
  }
  const imageInput = part(image * (rates.image ?? 0n))
  const audioInput = part(audio * (rates.input_audio ?? 0n))
  const plainInput = part(text * promptRate)
  const cachedInput = part(read * (rates.input_cache_read ?? promptRate))
  const cacheWrite = part(write5m * (rates.input_cache_write ?? 0n) + write1h * (rate1h ?? 0n))
  const imageOutput = part(drawn * (rates.image_output ?? 0n))
  const plainOutput = part(
    written * completionRate +
      thinking * (rates.internal_reasoning ?? 0n) +
      spoken * (rates.output_audio ?? completionRate),
  )
  const request = part((usage.request === undefined ? 1n : units(usage.request)) * (rates.request ?? 0n))
  const webSearch = part(units(usage.web_search) * (rates.web_search ?? 0n))
  return {
    input: imageInput + audioInput + plainInput,
    cachedInput,
    cacheWrite,
    output: imageOutput + plainOutput,
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
