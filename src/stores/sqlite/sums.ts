/**
 * Sums of money. SQLite rejects sums beyond 64 bits, which an organization whose custom provider has absurd prices and
 * usage could cause: whole dollars and the rest are added separately.
 */
const UNIT = 1_000_000_000n
/** Two columns of one sum: whole dollars, and nano-USD. */
export type Sum<Name extends string> = Readonly<Record<`${Name}Units` | `${Name}Rest`, bigint>>

/** Two columns of a query; `sumOf` reads them. */
export function sumAs(column: string, name: string): string {
  const sum = (part: string) => `coalesce(sum(${column} ${part} ${UNIT}), 0)`
  return `${sum('/')} AS ${name}Units, ${sum('%')} AS ${name}Rest`
}

/** What a key has spent: the same two columns, which are counted as its hours are. */
export const SPENT = 'keys.spent_units AS spentUnits, keys.spent_rest AS spentRest'

/** The sum in nano-USD. */
export const sumOf = <Name extends string>(row: Sum<Name>, name: Name): bigint =>
  row[`${name}Units`] * UNIT + row[`${name}Rest`]

/** Order by the sum, largest first. */
export const largest = (name: string): string => `${name}Units + ${name}Rest / ${UNIT} DESC, ${name}Rest % ${UNIT} DESC`
