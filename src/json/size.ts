/** About how long a value is as JSON, without writing it. */
import { Upload } from '../lib/body.ts'

/** Characters of a value beside its strings, about. */
const VALUE_CHARACTERS = 8

/** About how many characters a value of plain objects has as JSON, where each has `each`. Allocates nothing. */
export function weigh(value: unknown, each = VALUE_CHARACTERS): number {
  if (typeof value === 'string') return value.length + each
  if (typeof value !== 'object' || value === null) return each
  let sum = each
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) sum += weigh(value[at], each)
  else for (const name in value) sum += name.length + weigh((value as Record<string, unknown>)[name], each)
  return sum
}

/** Whether a value has more than so many characters as JSON, each with `each` beside its own. Looks no further than it must. */
export const exceeds = (value: unknown, characters: number, each = VALUE_CHARACTERS): boolean =>
  left(value, characters, each) <= 0

/** Returns how many of `characters` remain after the value. Stops at 0 or less. */
function left(value: unknown, characters: number, each: number): number {
  let rest = characters - each
  if (typeof value === 'string') return rest - value.length
  // Its hash stands for a file.
  if (typeof value !== 'object' || value === null || value instanceof Upload) return rest
  if (ArrayBuffer.isView(value)) return rest - value.byteLength
  if (Array.isArray(value)) for (let at = 0; at < value.length && rest > 0; at++) rest = left(value[at], rest, each)
  else
    for (const name in value) {
      if (rest <= 0) break
      rest = left((value as Record<string, unknown>)[name], rest - name.length, each)
    }
  return rest
}
