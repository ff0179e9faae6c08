/** Random identifiers: 20 characters, 100 bits, safe in URLs, labels and logs. */
import { randomFillSync } from 'node:crypto'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const LENGTH = 20
const pool = Buffer.allocUnsafe(LENGTH * 256)
let used = pool.length

export function shortId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  let id = ''
  for (const end = used + LENGTH; used < end; used++) id += ALPHABET[pool[used]! & 31]
  return id
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/
/** The caller's own request id when it is harmless, else a new one. */
export const requestId = (given: string | undefined): string =>
  given !== undefined && REQUEST_ID.test(given) ? given : shortId() + shortId()
