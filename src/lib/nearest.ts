/** Says which name was probably meant. */

const MAX_DISTANCE = 3
const MAX_LISTED = 24
/** Names of up to this length are compared; bounds the work for what is longer. */
const MAX_LENGTH = 64
/** Shorter parts are in too many names. */
const MIN_PART = 3

/** `unknown wire "openai.caht"; did you mean "openai.chat"?`, or the valid names when none is near. */
export function unknownName(kind: string, name: string, valid: Iterable<string>): string {
  const names = [...valid]
  return `unknown ${kind} ${JSON.stringify(name)}${suggestion(name, names)}`
}

/** The end of a sentence about a wrong name: the near one, else the valid ones. */
export const suggestion = (name: string, valid: readonly string[]): string =>
  didYouMean(name, valid) || expectedOneOf(valid)

/** `; did you mean "x"?`, or nothing. */
export function didYouMean(name: string, valid: Iterable<string>): string {
  const near = nearest(name, valid)
  return near === undefined ? '' : `; did you mean "${near}"?`
}

function expectedOneOf(names: readonly string[]): string {
  if (names.length === 0) return '; none is known'
  const rest = names.length - MAX_LISTED
  return `; expected ${names.slice(0, MAX_LISTED).join(', ')}${rest > 0 ? ` or one of ${rest} more` : ''}`
}

/** `a, b or c` */
export const anyOf = (names: readonly string[]): string => names.join(', ').replace(/, ([^,]+)$/, ' or $1')

/** The closest valid name within three edits, and within half of the name's length. */
export function nearest(name: string, valid: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(MAX_DISTANCE, Math.max(1, name.length >> 1)) + 1
  for (const candidate of valid) {
    if (name.length > MAX_LENGTH) break
    const distance = editDistance(name, candidate, least)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Up to `count` valid names that hold the name, or else the closest one. */
export function similar(name: string, valid: readonly string[], count = 3): readonly string[] {
  const part = name.toLowerCase()
  const near = nearest(name, valid)
  const holding = part.length < MIN_PART ? [] : valid.filter(one => one !== near && one.toLowerCase().includes(part))
  return [...(near === undefined ? [] : [near]), ...holding].slice(0, count)
}

/**
 * Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). `limit` for all that is as
 * far apart or farther, which takes time by the length alone: a name may be a stranger's, and the valid ones many.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  const width = b.length + 1
  let before: number[] = []
  let above = Array.from({ length: width }, (_, at) => Math.min(at, limit))
  for (let i = 1; i <= a.length; i++) {
    const row = new Array<number>(width).fill(limit)
    if (i < limit) row[0] = i
    let closest = row[0]!
    for (let j = Math.max(1, i - limit); j <= Math.min(b.length, i + limit); j++) {
      const substituted = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? limit) + 1 : limit
      row[j] = Math.min(substituted, above[j]! + 1, row[j - 1]! + 1, swapped, limit)
      closest = Math.min(closest, row[j]!)
    }
    if (closest >= limit) return limit
    before = above
    above = row
  }
  return above[b.length]!
}
