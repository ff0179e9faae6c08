/** Keys of maps and sets for texts that clients and providers choose. */
import { createHash } from 'node:crypto'
import { MAX_NAME_CHARACTERS } from './shape.ts'

/** The text itself, or the hash of one that is compared with all of its length otherwise (see `MAX_NAME_CHARACTERS`). */
export const textKey = (text: string): string => keyWithin(text, MAX_NAME_CHARACTERS)

/** Returns a key for storage: texts of more than `longest` characters become their hash. */
export const keyWithin = (text: string, longest: number): string =>
  text.length > longest ? createHash('sha256').update(text).digest('base64') : text

/** Returns the key of any value; a value that is not a text is its own key. */
export const valueKey = (value: unknown): unknown => (typeof value === 'string' ? textKey(value) : value)
