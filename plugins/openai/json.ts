/** Reads fields of parsed JSON that providers leave out, set to null or give another type. */

export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A string that says something. */
export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** A place in a list, as far as it can be believed; no answer has more choices, calls or blocks than this. */
export const indexIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1024 ? value : undefined
