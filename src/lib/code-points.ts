/** Lengths of strings in code points, as JSON Schema has them (draft 2020-12, validation section 6.3). */

export function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++, count++) if (text.codePointAt(at)! > 0xffff) at++
  return count
}

/** Whether a string has more than `most` code points; counted only where UTF-16 units, at most two each, leave it open. */
export const isLonger = (text: string, most: number): boolean =>
  text.length > most && (text.length > 2 * most || codePoints(text) > most)

/** Whether a string has fewer than `least` code points; counted only where its UTF-16 units leave it open. */
export const isShorter = (text: string, least: number): boolean =>
  text.length < least || (text.length < 2 * least && codePoints(text) < least)
