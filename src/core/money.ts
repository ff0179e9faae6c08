/** Integer money. Amounts are nano-USD, rates pico-USD per unit; floats appear only when a client is shown a number. */
import type { Axis } from './usage.ts'

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

/** JSON text of a price, each bigint as a string such as `"5n"`; `null` for a price that is unknown. */
export const writtenPrice = (price: Price | undefined): string =>
  JSON.stringify(price ?? null, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))

/** The inverse of `writtenPrice`. Throws a SyntaxError for what is not JSON. */
export const readPrice = (text: string): Price | undefined =>
  (JSON.parse(text, (_key, value: unknown) =>
    typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as Price | null) ?? undefined
