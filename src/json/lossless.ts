/**
 * Whole numbers that a double cannot hold, as identifiers of tools often are, on their way through JSON that is parsed
 * and written again: `JSON.parse` would round them. While such a number is a value, a mark of text stands for it.
 */
import { createHash, type Hash, randomBytes } from 'node:crypto'
import { parseAnswer } from './answer-bounds.ts'
import { isObject, type Json } from './json.ts'

/**
 * Random, so that no input contains it, and no digit at first, which would belong to a number before it. It leaves the
 * process nowhere, and who guesses it gets a number for a text.
 */
const MARK = `~${randomBytes(11).toString('base64url')}`
/** Fewer digits always fit. */
const EXACT_DIGITS = 16
const MANY_DIGITS = /\d{16}/
const TOKEN = /"|-?\d[\d.eE+-]*/g
const INTEGER = /^-?\d+$/
/** Matches the number behind a mark. */
const MARKED = /-?[1-9]\d{15,}/y

/** As `JSON.parse`, with marks. What is made of it has to go out through `stringifyLossless`. Throws a SyntaxError. */
export function parseLossless(json: string): unknown {
  const value: unknown = JSON.parse(json)
  return MANY_DIGITS.test(json) ? JSON.parse(marked(json)) : value
}

/**
 * JSON text, as `JSON.stringify` writes it, with numbers in place of its marks: of those that are a value with its quotes.
 * From within a text, and from a name, a mark is removed. What is no mark with its digits stays as it is.
 */
export function stringifyLossless(json: string): string {
  let out = ''
  let from = 0
  for (let at = json.indexOf(MARK); at >= 0; at = json.indexOf(MARK, at)) {
    const mark = at
    while (json.startsWith(MARK, at)) at += MARK.length
    MARKED.lastIndex = at
    const digits = MARKED.exec(json)?.[0]
    if (digits === undefined) continue
    at += digits.length
    // An escaped quote begins no string, and what a colon follows is a name.
    const isValue = json[mark - 1] === '"' && json[mark - 2] !== '\\' && json[at] === '"' && json[at + 1] !== ':'
    out += json.slice(from, isValue ? mark - 1 : mark) + digits
    from = isValue ? at + 1 : at
  }
  return from === 0 ? json : out + json.slice(from)
}

/** SHA-256 of the JSON text of a value. Files in it must have been hashed. */
export const jsonHash = (value: object): Hash => createHash('sha256').update(stringifyLossless(JSON.stringify(value)))

/** Whether a text is a mark. */
export const isLongNumber = (text: string): boolean => text.startsWith(MARK)

/**
 * The member of an object whose numbers must be passed on unchanged, such as the arguments of a call, or undefined.
 * `name` is the object's own member name.
 */
export type Place = (holder: Json, name: string) => string | undefined

/** As `JSON.parse`, with marks in what `place` names; elsewhere numbers are rounded. Throws a SyntaxError. */
export const parseBody = (json: string, place?: Place): unknown =>
  place ? parseAt(JSON.parse(json), json, place, member => member) : JSON.parse(json)

/** Parses an answer within its bounds. Where a number would be rounded, the value at `place` becomes its JSON text. */
export const parseCalls = (json: string, place: Place): unknown => parseAt(parseAnswer(json), json, place, calledWith)

const calledWith = (member: Json): string => stringifyLossless(JSON.stringify(member))

function parseAt(value: unknown, json: string, place: Place, keep: (member: Json) => unknown): unknown {
  return MANY_DIGITS.test(json) ? roundedAt(JSON.parse(marked(json)), place, keep) : value
}

function roundedAt(value: unknown, place: Place, keep: (member: Json) => unknown): unknown {
  const rounded = (value: unknown, name: string): unknown => {
    if (typeof value === 'string') return isLongNumber(value) ? Number(value.slice(MARK.length)) : value
    if (Array.isArray(value)) for (const [at, item] of value.entries()) value[at] = rounded(item, name)
    else if (isObject(value)) {
      const own = place(value, name)
      for (const key of Object.keys(value)) {
        const member = value[key]
        value[key] = key === own && isObject(member) ? keep(member) : rounded(member, key)
      }
    }
    return value
  }
  return rounded(value, '')
}

/**
 * With a mark in place of each whole number that would be rounded; for what is known to be JSON. Compared as text: a
 * BigInt of a number with a million digits takes half a second.
 */
function marked(json: string): string {
  let out = ''
  let from = 0
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(json); match; match = TOKEN.exec(json)) {
    const [part] = match
    const end = match.index + part.length
    if (part === '"') TOKEN.lastIndex = endOfString(json, end)
    else if (part.length >= EXACT_DIGITS && INTEGER.test(part) && JSON.stringify(Number(part)) !== part) {
      out += `${json.slice(from, match.index)}"${MARK}${part}"`
      from = end
    }
  }
  return out + json.slice(from)
}

/** Returns the place behind the quote that closes a string whose text begins at `at`; the length where none does. */
export function endOfString(json: string, at: number): number {
  for (let from = at; ; ) {
    const quote = json.indexOf('"', from)
    if (quote < 0) return json.length
    let slashes = 0
    while (json[quote - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return quote + 1
    from = quote + 1
  }
}
