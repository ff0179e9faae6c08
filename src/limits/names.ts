/** Names as rules and lists of models write them: one or several, each perhaps with `*`. */
import { perObject } from '../lib/per-object.ts'

/** The value as a list. */
export const listOf = <T>(value: T | readonly T[]): readonly T[] => (Array.isArray(value) ? value : [value as T])

/** Compiles names with `*` to a test of one or more names of the same thing; undefined where all fit. */
export function matcher(written: string | readonly string[] | undefined): ((name: string) => boolean) | undefined {
  if (written === undefined) return undefined
  const patterns = listOf(written).map(text => text.split('*'))
  return name => patterns.some(pieces => fitsPieces(pieces, name))
}

const testOf = perObject((list: readonly string[]) => {
  const exact = new Set(list)
  const fits = matcher(list.filter(name => name.includes('*')))!
  return (name: string) => exact.has(name) || fits(name)
})

/** Whether a list, compiled once, means one of `names`. A list may have a thousand names, and the catalogue as many offers. */
export const meansAny = (list: readonly string[], names: readonly string[]): boolean => names.some(testOf(list))

/** Whether a name has these pieces in order, the first at its begin and the last at its end. */
function fitsPieces(pieces: readonly string[], name: string): boolean {
  const [first = '', ...others] = pieces
  const last = others.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let from = first.length
  for (const piece of others) {
    const at = name.indexOf(piece, from)
    if (at < 0) return false
    from = at + piece.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}
