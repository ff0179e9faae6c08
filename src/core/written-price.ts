/** Prices as a row keeps them: JSON has no bigints. */
import type { Price } from './money.ts'

/** JSON text of a price, each bigint as a string such as `"5n"`; `null` for a price that is unknown. */
export const writtenPrice = (price: Price | undefined): string =>
  JSON.stringify(price ?? null, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))

/** The inverse of `writtenPrice`. Throws a SyntaxError for what is not JSON. */
export const readPrice = (text: string): Price | undefined =>
  (JSON.parse(text, (_key, value: unknown) =>
    typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as Price | null) ?? undefined
