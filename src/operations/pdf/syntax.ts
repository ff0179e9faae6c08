/**
 * Tokens of PDF (ISO 32000-2 section 7.2 and 7.3), as far as all readers take them in the same way. What readers may take in
 * different ways throws {@link Unclear}.
 */
import { type PdfBudget, spend, Unclear } from './budget.ts'

const SPACE = 1
const DELIMITER = 2
const DIGIT = 4
/** Some readers take these bytes as space, and others as part of a word. */
const ODD = 8
const LINE = 16
/** Neither opens nor closes anything. */
const PLAIN = 32

const KINDS = Uint8Array.from({ length: 256 }, (_, byte) => kindOf(byte))

function kindOf(byte: number): number {
  const character = String.fromCharCode(byte)
  if ('\r\n'.includes(character)) return SPACE | LINE | PLAIN
  if ('\0\t\f '.includes(character)) return SPACE | PLAIN
  if ('()<>[]{}%'.includes(character)) return DELIMITER
  if (character === '/') return DELIMITER | PLAIN
  if (byte >= 0x30 && byte <= 0x39) return DIGIT | PLAIN
  return (byte < 0x20 || byte > 0x7e ? ODD : 0) | PLAIN
}

/** Of the byte at `at`; 0 behind the end. */
const kindAt = (bytes: Buffer, at: number): number => KINDS[bytes[at] ?? EXCLAMATION]! & ~PLAIN
const EXCLAMATION = 0x21

export const isSpace = (bytes: Buffer, at: number): boolean => (kindAt(bytes, at) & SPACE) !== 0
export const isDigit = (bytes: Buffer, at: number): boolean => (kindAt(bytes, at) & DIGIT) !== 0
export const isLineEnd = (bytes: Buffer, at: number): boolean => (kindAt(bytes, at) & LINE) !== 0
export const isOdd = (bytes: Buffer, at: number): boolean => (kindAt(bytes, at) & ODD) !== 0
/** Whether a word ends before `at`. */
export const isBoundary = (bytes: Buffer, at: number): boolean =>
  at >= bytes.length || (kindAt(bytes, at) & (SPACE | DELIMITER)) !== 0
/** Whether the byte may be part of a number beside its digits. */
export const isSign = (bytes: Buffer, at: number): boolean => {
  const byte = bytes[at]
  return byte === PLUS || byte === MINUS || byte === POINT
}

const SPACE_CHARACTER = 0x20
const NUMBER_SIGN = 0x23
const PERCENT = 0x25
const OPEN = 0x28
const CLOSE = 0x29
const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const SLASH = 0x2f
const ZERO = 0x30
const LESS = 0x3c
const GREATER = 0x3e
const AT = 0x40
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const LETTER_R = 0x52
const TILDE = 0x7e
/** No name that is looked for has as many characters. */
const MAX_NAME = 32
/** A deeper value is read by few. */
const MAX_LEVELS = 64
/** More digits than a number of pages or objects has. */
const MAX_INTEGER = 9_999_999

/** Whether `word` stands at `at`. */
export function hasWord(bytes: Buffer, at: number, word: string): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word.charCodeAt(index)) return false
  return true
}

export const isName = (bytes: Buffer, at: number): boolean => bytes[at] === SLASH
export const opensArray = (bytes: Buffer, at: number): boolean => bytes[at] === OPEN_ARRAY
export const closesArray = (bytes: Buffer, at: number): boolean => bytes[at] === CLOSE_ARRAY
export const opensDictionary = (bytes: Buffer, at: number): boolean => bytes[at] === LESS && bytes[at + 1] === LESS
export const closesDictionary = (bytes: Buffer, at: number): boolean =>
  bytes[at] === GREATER && bytes[at + 1] === GREATER

/** Behind space and comments. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    while (kindAt(bytes, at) & SPACE) at++
    if (bytes[at] !== PERCENT) return at
    at = endOfLine(bytes, at)
  }
}

/** The same of space that may be passed over again and again. */
export function passSpace(bytes: Buffer, from: number, budget: PdfBudget): number {
  const at = skipSpace(bytes, from)
  spend(budget, 'parsed', at - from)
  return at
}

function endOfLine(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && !(kindAt(bytes, at) & LINE)) at++
  return at
}

/** Of a name, a number or a word, whose first byte is not looked at. */
export function endOfWord(bytes: Buffer, from: number): number {
  let at = from + 1
  while (!isBoundary(bytes, at)) at++
  return at
}

/** Of the value at `at`; of a reference to an object with its last letter. */
export function endOfValue(bytes: Buffer, at: number, level = 0): number {
  switch (bytes[at]) {
    case SLASH:
      return endOfWord(bytes, at)
    case OPEN:
      return endOfString(bytes, at)
    case LESS:
      return bytes[at + 1] === LESS ? endOfNested(bytes, at + 2, level) + 1 : endOfHex(bytes, at + 1)
    case OPEN_ARRAY:
      return endOfNested(bytes, at + 1, level)
    default:
      return endOfAtom(bytes, at)
  }
}

/** Of an array, or before the last byte of a dictionary, whose values begin at `from`. */
function endOfNested(bytes: Buffer, from: number, level: number): number {
  if (level > MAX_LEVELS) throw new Unclear('levels')
  const close = bytes[from - 1] === LESS ? GREATER : CLOSE_ARRAY
  let at = from
  for (;;) {
    while (KINDS[bytes[at] ?? PERCENT]! & PLAIN) at++
    if (bytes[at] === close) {
      if (close === GREATER && bytes[at + 1] !== GREATER) throw new Unclear('brackets')
      return at + 1
    }
    at = bytes[at] === PERCENT ? endOfLine(bytes, at) : endOfValue(bytes, at, level + 1)
  }
}

function endOfString(bytes: Buffer, from: number): number {
  let open = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === BACKSLASH) at++
    else if (byte === OPEN) open++
    else if (byte === CLOSE && --open === 0) return at + 1
  }
  throw new Unclear('string')
}

function endOfHex(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === GREATER) return at + 1
    if (!isHex(byte) && !isSpace(bytes, at)) break
  }
  throw new Unclear('string')
}

/** As a digit, or as a letter of any case. */
const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)

/** Of a number, a reference, or a constant. */
function endOfAtom(bytes: Buffer, at: number): number {
  if (isBoundary(bytes, at)) throw new Unclear('value')
  const end = endOfWord(bytes, at)
  if (!isDigit(bytes, at) && !isSign(bytes, at)) {
    if (CONSTANTS.some(constant => end - at === constant.length && hasWord(bytes, at, constant))) return end
    throw new Unclear('word')
  }
  const isWhole = checkNumber(bytes, at, end)
  const next = skipSpace(bytes, end)
  if (!isDigit(bytes, next)) return end
  const behind = endOfWord(bytes, next)
  const letter = skipSpace(bytes, behind)
  if (!isWhole || !checkNumber(bytes, next, behind)) throw new Unclear('number')
  if (bytes[letter] !== LETTER_R || !isBoundary(bytes, letter + 1)) throw new Unclear('number')
  return letter + 1
}
const CONSTANTS = ['true', 'false', 'null']

/** Whether the number is a whole one without a sign. */
function checkNumber(bytes: Buffer, from: number, end: number): boolean {
  let points = 0
  for (let at = from; at < end; at++) {
    if (isDigit(bytes, at)) continue
    if (bytes[at] === POINT) points++
    else if (at !== from || !isSign(bytes, at)) throw new Unclear('number')
  }
  if (points > 1) throw new Unclear('number')
  return points === 0 && isDigit(bytes, from)
}

/** The first characters of a name, without its slash, up to an odd one, and whether there is one. */
export function nameAt(bytes: Buffer, from: number): { name: string; isOdd: boolean } {
  let name = ''
  for (let at = from + 1; !isBoundary(bytes, at) && name.length < MAX_NAME; at++) {
    let byte = bytes[at]!
    if (byte === NUMBER_SIGN) {
      byte = hexOf(bytes[at + 1]) * 16 + hexOf(bytes[at + 2])
      at += 2
    }
    if (byte <= SPACE_CHARACTER || byte > TILDE) return { name, isOdd: true }
    name += String.fromCharCode(byte)
  }
  return { name, isOdd: false }
}

/** Whether the value at `at` is that name. */
export function isNamed(bytes: Buffer, at: number, wanted: string): boolean {
  if (!isName(bytes, at)) return false
  const { name, isOdd } = nameAt(bytes, at)
  return name === wanted && !isOdd
}

/** Of a digit; throws {@link Unclear} for another byte. */
function hexOf(byte = 0): number {
  if (!isHex(byte)) throw new Unclear('name')
  return byte < AT ? byte - ZERO : (byte & 0x0f) + 9
}

/** Whole numbers from `at` on, at most so many, and where the next token stands. */
export function integersAt(bytes: Buffer, from: number, most: number): { values: number[]; next: number } {
  const values: number[] = []
  let at = skipSpace(bytes, from)
  while (values.length < most && isDigit(bytes, at)) {
    const end = endOfWord(bytes, at)
    values.push(integerIn(bytes, at, end))
    at = skipSpace(bytes, end)
  }
  return { values, next: at }
}

/** The whole number at `at`, which is no reference. */
export function integerAt(bytes: Buffer, at: number): number {
  const first = bytes[at] === PLUS ? at + 1 : at
  if (!isDigit(bytes, first)) throw new Unclear('number')
  const end = endOfWord(bytes, first)
  if (isDigit(bytes, skipSpace(bytes, end))) throw new Unclear('reference')
  return integerIn(bytes, first, end)
}

/** The number of the object that the value at `at` refers to. */
export function referenceAt(bytes: Buffer, at: number): number {
  const { values, next } = integersAt(bytes, at, 2)
  if (values.length < 2 || bytes[next] !== LETTER_R || !isBoundary(bytes, next + 1)) throw new Unclear('reference')
  return values[0]!
}

/** The whole number that ends at `end`. */
export function integerIn(bytes: Buffer, from: number, end: number): number {
  let value = 0
  for (let at = from; at < end; at++) {
    if (!isDigit(bytes, at)) throw new Unclear('number')
    value = value * 10 + bytes[at]! - 0x30
    if (value > MAX_INTEGER) throw new Unclear('number')
  }
  return value
}
