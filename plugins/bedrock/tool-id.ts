/** Tool call ids of any provider in the form that the model accepts (R4); for `UniqueNames`. */
import { createHash } from 'node:crypto'

const MAX_LENGTH = 64
const SHORT = /^[a-zA-Z0-9]{9}$/

/** At most 64 letters, digits, `_` and `-`; `count`: which call of this foreign id it is, from 1 on. */
export function plainId(foreign: string, count: number): string {
  const base = foreign.slice(0, MAX_LENGTH).replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
  const suffix = count === 1 ? '' : `_${count}`
  return base.slice(0, MAX_LENGTH - suffix.length) + suffix
}

/** Models of Mistral accept exactly nine letters and digits. */
export function shortId(foreign: string, count: number): string {
  if (count === 1 && SHORT.test(foreign)) return foreign
  return createHash('sha256').update(`${foreign}#${count}`).digest('hex').slice(0, 9)
}
