/** Strings in a text of JSON: where they end, and what they say, in steps where they are long. */

const BACKSLASH = 0x5c
/** Characters of the longest escape, `\u` and four digits, minus one. */
const ESCAPE = 5
/** Characters that are scanned in one step. */
export const SCAN = 256 * 1024

/** The text of a string that stands between these places, with its quotes. Throws a SyntaxError for what is none. */
export function* stringSteps(text: string, from: number, to: number, piece: number): Generator<undefined, string> {
  const size = Math.max(4 * piece, 2 * ESCAPE)
  const last = to - 1
  let value = ''
  for (let at = from + 1; at < last; ) {
    const end = last - at > size ? pieceEnd(text, at, at + size) : last
    value += JSON.parse(`"${text.slice(at, end)}"`)
    at = end
    yield
  }
  // Without escapes it is a part of the text, which is there.
  return value.length === last - from - 1 ? text.slice(from + 1, last) : value
}

/** Where a piece of a string may end: at `to`, or before the escape that goes on there. */
function pieceEnd(text: string, from: number, to: number): number {
  for (let at = to - 1; at >= to - ESCAPE; at--) {
    if (text.charCodeAt(at) !== BACKSLASH) continue
    let first = at
    while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first--
    // Of an even number each escapes the next.
    return (at - first) % 2 === 0 ? at : to
  }
  return to
}

/**
 * Behind the string whose text begins at this place; negative where it goes on behind `last`. Throws a SyntaxError where
 * it does not end.
 */
export function afterString(text: string, from: number, last = text.length): number {
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    if (quote > last) return -1
    let backslashes = 0
    while (quote - 1 - backslashes >= from && text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return quote + 1
  }
  throw new SyntaxError('a string does not end')
}

/** The same in steps, for any length and any number of escapes. */
export function* afterLongString(text: string, from: number): Generator<undefined, number> {
  let at = from
  let paused = from
  for (let quote = text.indexOf('"', at); quote >= 0; ) {
    const before = text.slice(at, quote).indexOf('\\')
    if (before < 0) return quote + 1
    at += before + 2
    if (at > quote) quote = text.indexOf('"', at)
    if (at - paused < SCAN) continue
    paused = at
    yield
  }
  throw new SyntaxError('a string does not end')
}
