/** Says which name was probably meant. */

const MAX_DISTANCE = 3
const MAX_LISTED = 24
/** No name that an operator writes is longer; bounds the work for what is. */
const MAX_LENGTH = 128

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
  if (names.length === 0) return '; there are none to choose from'
  const rest = names.length - MAX_LISTED
  return `; expected ${names.slice(0, MAX_LISTED).join(', ')}${rest > 0 ? ` or one of ${rest} more` : ''}`
}

/** The closest valid name within three edits, and within half of the name's length. */
export function nearest(name: string, valid: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(MAX_DISTANCE, Math.max(1, name.length >> 1)) + 1
  for (const candidate of valid) {
    if (Math.abs(candidate.length - name.length) >= least || name.length > MAX_LENGTH) continue
    const distance = editDistance(name, candidate)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1]!
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? rows[i - 2]?.[j - 2] : undefined
      row.push(Math.min(substituted, above[j]! + 1, row[j - 1]! + 1, swapped === undefined ? Infinity : swapped + 1))
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
