/** Bounds the shape of a JSON body before it is parsed: `JSON.parse` has no limit of depth or of values. */
import { errors } from '../core/error.ts'

const MAX_DEPTH = 128
const MAX_VALUES = 200_000
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Throws a 400 for a body that nests too deep or holds too many values; leaves syntax to the parser. */
export function scanShape(body: Buffer): void {
  let depth = 0
  let values = 1
  for (let at = 0; at < body.length; at++) {
    switch (body[at]) {
      case QUOTE:
        at = endOfString(body, at)
        if (at < 0) return
        break
      case 0x7b: // {
      case 0x5b: // [
        if (++depth > MAX_DEPTH) throw errors.tooDeep(MAX_DEPTH)
        if (++values > MAX_VALUES) throw errors.tooManyElements(MAX_VALUES)
        break
      case 0x7d: // }
      case 0x5d: // ]
        depth--
        break
      case 0x2c: // ,
        if (++values > MAX_VALUES) throw errors.tooManyElements(MAX_VALUES)
        break
    }
  }
}

/** Index of the closing quote, found natively: strings are the bulk of a prompt. -1 when there is none. */
function endOfString(body: Buffer, open: number): number {
  let close = body.indexOf(QUOTE, open + 1)
  while (close > 0) {
    let backslashes = 0
    while (body[close - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return close
    close = body.indexOf(QUOTE, close + 1)
  }
  return -1
}
