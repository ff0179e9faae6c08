/** Suggests the name that was probably meant. */

const MAX_DISTANCE = 3
const MAX_LISTED_NAMES = 24
/** Longer names are not compared, which bounds the work. */
const MAX_NAME_CHARACTERS = 64
/** Shorter parts occur in too many names. */
const MIN_PART_CHARACTERS = 3

/** `unknown wire "openai.caht"; did you mean "openai.chat"?`, or the valid names when none is near. */
export function unknownName(kind: string, name: string, valid: Iterable<string>): string {
  const names = [...valid]
  return `unknown ${kind} ${JSON.stringify(name)}${suggestion(name, names)}`
}

/** End of a message about an unknown name: the nearest valid name, else a list of valid names. */
export const suggestion = (name: string, valid: readonly string[]): string =>
  didYouMean(name, valid) || expectedOneOf(valid)

/** `; did you mean "x"?`, or '' when no name is near. */
export function didYouMean(name: string, valid: Iterable<string>): string {
  const near = nearest(name, valid)
  return near === undefined ? '' : `; did you mean "${near}"?`
}

function expectedOneOf(names: readonly string[]): string {
  if (names.length === 0) return '; none is known'
  const rest = names.length - MAX_LISTED_NAMES
  return `; expected ${names.slice(0, MAX_LISTED_NAMES).join(', ')}${rest > 0 ? ` or one of ${rest} more` : ''}`
}

/** `a, b or c` */
export const anyOf = (names: readonly string[]): string => names.join(', ').replace(/, ([^,]+)$/, ' or $1')

/** The closest valid name within three edits and half of the name's length. */
export function nearest(name: string, valid: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(MAX_DISTANCE, Math.max(1, name.length >> 1)) + 1
  for (const candidate of valid) {
    if (name.length > MAX_NAME_CHARACTERS) break
    const distance = editDistance(name, candidate, least)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Up to `count` valid names that contain the name, else the closest one. */
export function similar(name: string, valid: readonly string[], count = 3): readonly string[] {
  const part = name.toLowerCase()
  const near = nearest(name, valid)
  const holding =
    part.length < MIN_PART_CHARACTERS ? [] : valid.filter(one => one !== near && one.toLowerCase().includes(part))
  return [...(near === undefined ? [] : [near]), ...holding].slice(0, count)
}

/**
 * Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. Returns `limit` for any
 * distance of `limit` or more; differing lengths decide that without comparing, since clients choose the names.
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
