/** Prices of the configuration → rates of the ledger, and decimals for clients. */

import { formatDecimal, type Price, parseDecimal } from '../core/money.ts'
import type { Mapping } from '../core/translator.ts'
import type { ConfigError } from './error.ts'
import type { OfferEntry } from './schemas/offer.ts'
import { tokenPriceKeys, unitPriceKeys } from './schemas/pricing.ts'
import type { Path } from './source.ts'

/** USD per million tokens with 6 decimals is pico-USD per token; USD per unit with 12 is pico-USD per unit. */
const TOKEN_PLACES = 6
const UNIT_PLACES = 12
/** Factors in millionths. */
const FACTOR_PLACES = 6

type Rates = Price['rates']
type Fail = (message: string, path: Path) => ConfigError
type Key = (typeof tokenPriceKeys)[number] | (typeof unitPriceKeys)[number]
type Written = Readonly<Partial<Record<Key, string | undefined>>>

/** `price` is undefined when the configured rates do not determine the cost of a request. */
type LinkedPricing = Pick<Mapping, 'price' | 'pricing' | 'pricingBySize'>

/**
 * `isEnough`: whether a price covers everything that answers are charged for. `fail` takes paths within the mapping.
 */
export function linkPricing(entry: OfferEntry, isEnough: (price: Price) => boolean, fail: Fail): LinkedPricing {
  const { pricing: written, pricing_tiers: tiers } = entry
  if (!written) {
    if (tiers.length > 0) throw fail('tiers replace single rates of "pricing", which is missing', ['pricing_tiers'])
    return { price: undefined, pricing: {} }
  }
  const { per_second, per_image, ...rest } = written
  const rates = readRates(rest, ['pricing'], fail)
  const perSecond = per_second && readUnits(per_second, ['pricing', 'per_second'], fail)
  const perImage = per_image && readUnits(per_image, ['pricing', 'per_image'], fail)
  const price = { rates, tiers: readTiers(tiers, rates, fail), perSecond, perImage, tierFactors: readFactors(entry) }
  const bySize = {
    ...(per_second && perSecond && { per_second: shortest(per_second, perSecond) }),
    ...(per_image && perImage && { per_image: shortest(per_image, perImage) }),
  }
  return {
    price: isEnough(price) ? price : undefined,
    pricing: decimals(rates),
    ...((perSecond || perImage) && { pricingBySize: bySize }),
  }
}

function readFactors({ tier_factors: written }: OfferEntry): Price['tierFactors'] {
  if (!written) return undefined
  const factors = Object.entries(written).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(factors.map(([tier, factor]) => [tier, parseDecimal(factor, FACTOR_PLACES)]))
}

/** Rates for clients: USD as the shortest decimals. */
const decimals = (rates: Readonly<Record<string, bigint>>): Record<string, string> =>
  Object.fromEntries(Object.entries(rates).map(([key, rate]) => [key, formatDecimal(rate, UNIT_PLACES)]))

const SHORTEST = /^(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/

/** Tells whether prices were written as the shortest decimals. Mostly they are, and a manifest may have thousands. */
const shortest = (written: Readonly<Record<string, string>>, rates: Readonly<Record<string, bigint>>) =>
  Object.values(written).every(text => SHORTEST.test(text)) ? written : decimals(rates)

function readTiers(tiers: OfferEntry['pricing_tiers'], base: Rates, fail: Fail): Price['tiers'] {
  return tiers.map(({ above_prompt_tokens: above, ...written }, index) => {
    const below = tiers[index - 1]?.above_prompt_tokens ?? 0
    const path = ['pricing_tiers', index]
    if (above <= below) {
      throw fail(`expected more than the ${below} of the tier before`, [...path, 'above_prompt_tokens'])
    }
    return { above, rates: { ...base, ...readRates(written, path, fail) } }
  })
}

function readRates(written: Written, path: Path, fail: Fail): Rates {
  const rates: Partial<Record<Key, bigint>> = {}
  for (const key of tokenPriceKeys) {
    const text = written[key]
    if (text !== undefined) rates[key] = read(text, TOKEN_PLACES, 'million tokens', path, key, fail)
  }
  for (const key of unitPriceKeys) {
    const text = written[key]
    if (text !== undefined) rates[key] = read(text, UNIT_PLACES, 'unit', path, key, fail)
  }
  return rates
}

function readUnits(written: Readonly<Record<string, string>>, path: Path, fail: Fail): Record<string, bigint> {
  const rates: Record<string, bigint> = {}
  for (const key of Object.keys(written)) rates[key] = read(written[key]!, UNIT_PLACES, 'unit', path, key, fail)
  return rates
}

function read(text: string, places: number, per: string, path: Path, key: string, fail: Fail): bigint {
  try {
    return parseDecimal(text, places)
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown
    throw fail(`${thrown.message}; expected USD per ${per} with at most ${places} decimals`, [...path, key])
  }
}
