/** Columns of the sums of requests, and sums of money. */

/** Columns of hourly and daily sums that count. */
export const COUNTS = [
  'requests',
  'errors',
  'cached',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
] as const
/** Columns of hourly and daily sums that are money. */
export const COSTS = ['cost', 'credits_cost', 'byok_cost', 'storage_cost'] as const

/**
 * Sums of money. A sum may exceed 64 bits, which an organization whose custom provider has absurd prices and usage
 * could cause: whole dollars and the rest are added separately.
 */
const UNIT = 1_000_000_000n
/** Two columns of one sum: whole dollars, and nano-USD. */
export type Sum<Name extends string> = Readonly<Record<`${Name}_units` | `${Name}_rest`, bigint>>

/** Two columns of a query; `sumOf` reads them. */
export function sumAs(column: string, name: string): string {
  const sum = (part: string) => `CAST(coalesce(sum(${column} ${part} ${UNIT}), 0) AS bigint)`
  return `${sum('/')} AS ${name}_units, ${sum('%')} AS ${name}_rest`
}

/** Columns of a key's spending, counted like those of its hours. */
export const SPENT = 'keys.spent_units, keys.spent_rest'

/** The sum in nano-USD. */
export const sumOf = <Name extends string>(row: Sum<Name>, name: Name): bigint =>
  row[`${name}_units`] * UNIT + row[`${name}_rest`]

/** Whole dollars and the rest of nano-USD. */
export const splitSum = (sum: bigint) => ({ units: sum / UNIT, rest: sum % UNIT })

/** SQL: orders by the sum of a query below, largest first. */
export const largest = (name: string): string =>
  `${name}_units + ${name}_rest / ${UNIT} DESC, ${name}_rest % ${UNIT} DESC`
