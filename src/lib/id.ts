/** Identifiers: 20 characters that are safe in URLs, labels and logs. */
import { randomFillSync, randomInt } from 'node:crypto'

/** In ascending order of character codes, so that ids sort by time. */
const ALPHABET = '234567abcdefghijklmnopqrstuvwxyz'
const TIME_CHARACTERS = 9
const COUNT_CHARACTERS = 2
const RANDOM_CHARACTERS = 9
/** Ids per millisecond that keep their order. */
const COUNTED = 32 ** COUNT_CHARACTERS
const CODES = Buffer.from(ALPHABET)
const pool = Buffer.allocUnsafe(RANDOM_CHARACTERS * 256)
/** Buffer for the id; concatenation character by character would leave a string of as many pieces. */
const id = Buffer.alloc(TIME_CHARACTERS + COUNT_CHARACTERS + RANDOM_CHARACTERS)
let used = pool.length
let stamped = 0
let count = 0

/**
 * Milliseconds, a counter within them, then 45 random bits: ids of one process sort by creation. Neighbouring times
 * give neighbouring ids, so that a database appends to its indexes instead of touching a page of each for every
 * request.
 */
export function shortId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const now = Date.now()
  if (now !== stamped) {
    stamped = now
    count = 0
    id.write(stampOf(now), 'latin1')
  } else count = (count + 1) % COUNTED
  id[TIME_CHARACTERS] = CODES[count >> 5]!
  id[TIME_CHARACTERS + 1] = CODES[count & 31]!
  for (let at = TIME_CHARACTERS + COUNT_CHARACTERS; at < id.length; at++) id[at] = CODES[pool[used++]! & 31]!
  return id.toString('latin1')
}

/** Prefix of all ids made at `ms` (Unix milliseconds); it sorts before these ids and after all earlier ones. */
export function stampOf(ms: number): string {
  let stamp = ''
  for (let rest = ms; stamp.length < TIME_CHARACTERS; rest = Math.floor(rest / 32)) stamp = ALPHABET[rest % 32] + stamp
  return stamp
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/
/** The caller's request id when it matches the allowed pattern, else a new one. */
export const requestId = (given: string | undefined): string =>
  given !== undefined && REQUEST_ID.test(given) ? given : shortId()

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** `length` random letters and digits. */
export const base62 = (length: number): string =>
  Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('')
