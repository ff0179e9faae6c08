/** Hourly sums of requests, and consistency of an organization's records. */
import { formatMoney, type Money } from '../../core/money.ts'
import { OPEN_SERIES } from '../../core/offer.ts'
import type { RequestRow } from '../../core/ports.ts'
import type { Axis, Usage } from '../../core/usage.ts'
import { hourOf } from '../../lib/period.ts'
import type { Payment } from './settlement.ts'

type Dimension = 'at' | 'orgId' | 'projectId' | 'keyId' | 'provider' | 'model' | 'source'
/** Properties of a row that its hourly sum depends on. */
export type Counted = Pick<RequestRow, Dimension | 'outcome' | 'cached' | 'usage' | 'storage' | 'discount'>

/** Sum of the requests of one hour with the same dimensions. */
export interface HourSum {
  readonly dimensions: readonly [
    hour: number,
    orgId: string,
    projectId: string,
    keyId: string,
    provider: string,
    model: string,
    source: string,
  ]
  requests: number
  errors: number
  cached: number
  input: number
  output: number
  cacheRead: number
  reasoning: number
  cost: Money
  credits: Money
  byok: Money
  storage: Money
  /** Savings of discounts against the list price. */
  savings: Money
}

type Dimensions = HourSum['dimensions']

/** '' for absent values. */
export const dimensionsOf = ({
  at,
  orgId,
  projectId,
  keyId,
  provider,
  model,
  source,
}: Pick<RequestRow, Dimension>): Dimensions => [
  hourOf(at),
  orgId,
  projectId,
  keyId,
  provider ?? '',
  model ?? '',
  source ?? '',
]

/** A key that has so many sums of an hour gets no further sources there, since callers can make them up. */
export const MAX_BY_SOURCE = 256
/** And no further models: an own provider may answer any name. */
export const MAX_BY_MODEL = 512

/** The sums of an hour of a key. */
interface KnownSums {
  has(dimensions: Dimensions): boolean
  /** How many there are; not counted beyond `MAX_BY_MODEL`. */
  count(): number
}

/** The sum that counts a request with these dimensions. Sums are never removed, so that it is the same one each time. */
export function placeOf(dimensions: Dimensions, known: KnownSums): Dimensions {
  if (known.has(dimensions)) return dimensions
  const count = known.count()
  if (count < MAX_BY_SOURCE) return dimensions
  const [hour, orgId, projectId, keyId, provider, model] = dimensions
  const unnamed: Dimensions = [hour, orgId, projectId, keyId, provider, model, 'other']
  if (count < MAX_BY_MODEL || known.has(unnamed)) return unnamed
  return [hour, orgId, projectId, keyId, provider, OPEN_SERIES, 'other']
}

/** The sum of no request, for these dimensions. */
export const emptySum = (dimensions: Dimensions): HourSum => ({
  dimensions,
  requests: 0,
  errors: 0,
  cached: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  reasoning: 0,
  cost: 0n,
  credits: 0n,
  byok: 0n,
  storage: 0n,
  savings: 0n,
})

/** Adds a row to its sum, or subtracts it. */
export function addRow(sum: HourSum, row: Counted, { cost, funds }: Payment, times: 1 | -1): void {
  sum.requests += times
  if (row.outcome === 'error' || row.outcome === 'orphaned') sum.errors += times
  if (row.cached) sum.cached += times
  sum.input += times * (wholeNumber(row.usage.prompt) ?? 0)
  sum.output += times * (wholeNumber(row.usage.completion) ?? 0)
  sum.cacheRead += times * (wholeNumber(row.usage.input_cache_read) ?? 0)
  sum.reasoning += times * (wholeNumber(row.usage.internal_reasoning) ?? 0)
  const amount = BigInt(times) * (cost ?? 0n)
  sum.cost += amount
  if (funds === 'credits') sum.credits += amount
  if (funds === 'byok') sum.byok += amount
  sum.storage += BigInt(times) * row.storage
  sum.savings += BigInt(times) * savedBy(cost ?? 0n, row.discount)
}

/** Saving of a discount, in millionths of the list price, on a price that is now `cost`; rounded to nearest. */
export function savedBy(cost: Money, discount: number): Money {
  const taken = BigInt(discount)
  const left = MILLIONTHS - taken
  const saved = left > 0n ? (cost * taken + left / 2n) / left : 0n
  return saved < MAX_SAVED_NANO ? saved : MAX_SAVED_NANO
}
const MILLIONTHS = 1_000_000n
/** A million USD: a sum beyond the storable range must not fail a charge. */
const MAX_SAVED_NANO = 10n ** 15n

/** A storable count: an odd number from a provider must not fail a charge. */
export const wholeNumber = (value: number | undefined): number | null =>
  value !== undefined && Number.isFinite(value) ? Math.round(value) : null

/** Axes of usage that a row has a column for. */
const columns: ReadonlySet<string> = new Set<Axis>([
  'prompt',
  'completion',
  'input_cache_read',
  'input_cache_write',
  'internal_reasoning',
])

/** The remaining axes, as JSON; null without any. */
export function otherUsage(usage: Usage): string | null {
  let rest: Usage | undefined
  for (const key in usage) if (!columns.has(key)) rest = { ...rest, [key]: usage[key as Axis] }
  return rest ? JSON.stringify(rest) : null
}

/** Sums of an organization's rows, ledger entries, holds and accounts; an absent one is 0. */
type Facts = ReadonlyMap<string, bigint>

const usd = (amount: bigint): string => `${formatMoney(amount)} USD`
const plain = (count: bigint): string => String(count)

/** Pairs of facts that must be equal, how to format them, and how to name them in a difference. */
const equal: readonly (readonly [
  left: string,
  right: string,
  show: (value: bigint) => string,
  saysLeft: string,
  saysRight: string,
])[] = [
  ['rows', 'hourlyRows', plain, 'request rows', 'requests in the hourly sums'],
  ['rowCharges', 'charges', usd, 'charged by the request rows', 'charged in the ledger'],
  ['rowCost', 'hourlyCost', usd, 'cost of the request rows', 'cost in the hourly sums'],
  ['dailyRows', 'summedRows', plain, 'requests in the daily sums', 'in the hourly sums of these days'],
  ['dailyCost', 'summedCost', usd, 'cost in the daily sums', 'in the hourly sums of these days'],
  ['balance', 'entries', usd, 'balance', 'sum of the ledger'],
  ['used', 'creditCharges', usd, 'used', 'charged in the ledger'],
  ['held', 'openHolds', usd, 'held', 'sum of the open holds'],
  ['planUsed', 'monthCharges', usd, 'used of the plan', 'charged to it in the ledger'],
  ['planHeld', 'planHolds', usd, 'held of the plan', 'sum of its open holds'],
  ['premiumHeld', 'premiumHolds', usd, 'held for premium models', 'sum of their open holds'],
]

/** One sentence per pair of facts that differ, by organization. */
export function differences(organizations: ReadonlyMap<string, Facts>): string[] {
  const found: string[] = []
  for (const org of [...organizations.keys()].sort()) {
    const facts = organizations.get(org)!
    for (const [left, right, show, saysLeft, saysRight] of equal) {
      const [a, b] = [facts.get(left) ?? 0n, facts.get(right) ?? 0n]
      if (a !== b) found.push(`Organization ${org}: ${show(a)} ${saysLeft}, but ${show(b)} ${saysRight}.`)
    }
  }
  return found
}

/** A limit whose holds differ from the `open` holds that count against it. */
export const limitDifference = (id: string, held: Money, open: Money): string =>
  `Limit ${id}: ${usd(held)} held, but ${usd(open)} sum of its open holds.`
