/** Reads fields of parsed JSON, whose types nobody vouches for. */

export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A string that says something. */
export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
