/** What stands before an object: its number, its generation, and `obj`, in one line (ISO 32000-2 section 7.3.10). */
import { Unclear } from './budget.ts'
import { hasWord, integerIn, isBoundary, isDigit, isLineEnd, isOdd, isSign, isSpace } from './syntax.ts'

const OBJECT = 'obj'

/** Whether the last word of a header stands at `at`. */
const endsHeader = (bytes: Buffer, at: number): boolean =>
  hasWord(bytes, at, OBJECT) && (isBoundary(bytes, at + OBJECT.length) || isOdd(bytes, at + OBJECT.length))

/**
 * The number of the object whose header ends at `behind`; undefined where none does. Throws
 * {@link Unclear} for one that not all readers take: with lines, which may be comments, or signs.
 */
export function headerBefore(bytes: Buffer, behind: number): number | undefined {
  const end = behind - OBJECT.length
  if (!endsHeader(bytes, end)) return undefined
  const generationEnd = gapBefore(bytes, end)
  const generation = digitsBefore(bytes, generationEnd)
  if (generation === generationEnd && !isSign(bytes, generation - 1)) return undefined
  const numberEnd = gapBefore(bytes, generation)
  const number = digitsBefore(bytes, numberEnd)
  const hasSign = [generation, generationEnd, number, numberEnd].some(at => isSign(bytes, at - 1))
  if (!hasSign && (number === numberEnd || numberEnd === generation)) return undefined
  if (hasSign || !isPlain(bytes, number, end)) throw new Unclear('header')
  return integerIn(bytes, number, numberEnd)
}

/** The number of the object whose header begins at `at`, if one does. */
export function headerAt(bytes: Buffer, at: number): number | undefined {
  const numberEnd = digitsBehind(bytes, at)
  const generation = gapBehind(bytes, numberEnd)
  const end = gapBehind(bytes, digitsBehind(bytes, generation))
  return generation > numberEnd && isDigit(bytes, generation) && endsHeader(bytes, end)
    ? integerIn(bytes, at, numberEnd)
    : undefined
}

/** Where the space begins that ends at `end`. A line may be a comment. */
function gapBefore(bytes: Buffer, end: number): number {
  let at = end
  for (; isSpace(bytes, at - 1) || isOdd(bytes, at - 1); at--) if (isLineEnd(bytes, at - 1)) throw new Unclear('header')
  return at
}

function digitsBefore(bytes: Buffer, end: number): number {
  let at = end
  while (isDigit(bytes, at - 1)) at--
  return at
}

function digitsBehind(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes, at)) at++
  return at
}

function gapBehind(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes, at) && !isLineEnd(bytes, at)) at++
  return at
}

function isPlain(bytes: Buffer, from: number, end: number): boolean {
  for (let at = from; at < end; at++) if (isOdd(bytes, at)) return false
  return true
}
