/**
 * Sums of money. SQLite refuses one beyond 64 bits, and an organization whose own provider has absurd prices, and tells
 * absurd usage, would make one of all that are asked for: dollars and what is left of them are added up apart.
 */
const UNIT = 1_000_000_000n
export type Sum<Name extends string> = Readonly<Record<`${Name}Units` | `${Name}Rest`, bigint>>

/** Two columns of a query; `sumOf` reads them. With `from`, each is a query of its own. */
export function sumAs(column: string, name: string, from = ''): string {
  const sum = (part: string) => `coalesce(sum(${column} ${part} ${UNIT}), 0)`
  const of = (part: string) => (from === '' ? sum(part) : `(SELECT ${sum(part)} ${from})`)
  return `${of('/')} AS ${name}Units, ${of('%')} AS ${name}Rest`
}

export const sumOf = <Name extends string>(row: Sum<Name>, name: Name): bigint =>
  row[`${name}Units`] * UNIT + row[`${name}Rest`]

/** By the sum, the largest first. */
export const largest = (name: string): string => `${name}Units + ${name}Rest / ${UNIT} DESC, ${name}Rest % ${UNIT} DESC`
