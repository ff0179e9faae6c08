/** Bounds the shape of JSON text before it is parsed: `JSON.parse` has no limit of levels or of values. */

/** Of anything that is parsed: bodies, text in them that is JSON itself, answers. */
export const MAX_LEVELS = 128
/** Of a body, with what its texts hold, unless an endpoint names its own number. */
export const MAX_VALUES = 200_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
/** Characters of a string that are looked at one by one: to search natively costs as much as this many. */
const SHORT = 24

export type Excess = 'levels' | 'values'

/** Counts the values of one or more texts. Leaves syntax to the parser. */
export class Shape {
  readonly #most: number
  #values: number

  /** `most`: of values, of which there are `values` already. */
  constructor(most: number, values = 0) {
    this.#most = most
    this.#values = values
  }

  /** The bound that `text`, which stands `level` levels deep, passes; undefined for none. */
  add(text: string, level = 0): Excess | undefined {
    const { length } = text
    let depth = level
    let values = this.#values + 1
    let excess: Excess | undefined
    for (let at = 0; at < length; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) at = closingQuote(text, at + 1)
      else if (code === COMMA) values++
      else if (code === OPEN_OBJECT || code === OPEN_LIST) {
        values++
        if (++depth > MAX_LEVELS) excess = 'levels'
      } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--
      else continue
      if (values > this.#most) excess ??= 'values'
      if (excess !== undefined) break
    }
    this.#values = values
    return excess
  }
}

/** Where the string ends whose text begins `at` this place: at its quote, or behind all of `text`. */
function closingQuote(text: string, at: number): number {
  let near = at + SHORT
  for (let look = at; look < text.length; look++) {
    if (look > near) {
      // Of what is long there is likely more.
      const quote = text.indexOf('"', look)
      if (quote < 0) return text.length
      let backslashes = 0
      while (quote - 1 - backslashes >= look && text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++
      if (backslashes % 2 === 0) return quote
      look = quote
      near = quote + SHORT
      continue
    }
    const code = text.charCodeAt(look)
    if (code === QUOTE) return look
    if (code === BACKSLASH) look++
  }
  return text.length
}
