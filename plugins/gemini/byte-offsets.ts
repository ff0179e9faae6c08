/** Converts offsets in the UTF-8 bytes of a text, which this wire counts, to UTF-16 units. */

/** By byte offset; omits offsets inside a character or beyond the text. One pass for all offsets. */
export function unitsOf(text: string, offsets: Iterable<number>): ReadonlyMap<number, number> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b)
  const units = new Map<number, number>()
  let next = 0
  let bytes = 0
  for (let at = 0; next < sorted.length; at++) {
    while (sorted[next]! < bytes) next++
    if (sorted[next] === bytes) units.set(sorted[next++]!, at)
    if (at === text.length) break
    const code = text.charCodeAt(at)
    if (code < 0x80) bytes += 1
    else if (code < 0x800) bytes += 2
    else if (isPair(text, at)) {
      bytes += 4
      at++
    } else bytes += 3
  }
  return units
}

/** A lone surrogate is encoded as a replacement character of three bytes. */
const isPair = (text: string, at: number): boolean => text.codePointAt(at)! > 0xffff
