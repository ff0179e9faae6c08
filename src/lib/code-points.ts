/** Length of a string in code points, as JSON Schema counts (draft 2020-12, validation section 6.3). */

/** A surrogate pair counts as one; a lone surrogate too. */
export function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++, count++) if (text.codePointAt(at)! > 0xffff) at++
  return count
}

/**
 * Whether a string has more than `most` code points. Counts only when the number of UTF-16 units, at most two each,
 * leaves it open.
 */
export const isLonger = (text: string, most: number): boolean =>
  text.length > most && (text.length > 2 * most || codePoints(text) > most)

/** Whether a string has fewer than `least` code points. Counts only when the number of UTF-16 units leaves it open. */
export const isShorter = (text: string, least: number): boolean =>
  text.length < least || (text.length < 2 * least && codePoints(text) < least)
