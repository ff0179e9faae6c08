/** Parses a body whose long strings are kept as they were written. */
import { randomBytes } from 'node:crypto'
import { type Body, RawStrings } from '../json/raw-strings.ts'
import { utf8Text } from '../lib/utf8.ts'

/**
 * Stands in JSON text for a long string while the rest is parsed. Random, so that no text contains it; letters only, so
 * that it is base64, and nothing that JSON escapes.
 */
const MARK = [...randomBytes(24)].map(byte => String.fromCharCode(0x61 + (byte & 15))).join('')
const DIGITS = 8
const LENGTH = MARK.length + DIGITS

/** Stands for the long string of that index. */
const markOf = (index: number): string => MARK + String(index).padStart(DIGITS, '0')

/** The value with texts in place of the strings that are marks; changes its lists and objects. */
function restored(value: unknown, textAt: (index: number) => string | undefined): unknown {
  if (typeof value === 'string')
    return value.length === LENGTH && value.startsWith(MARK) ? textAt(Number(value.slice(MARK.length))) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) value[at] = restored(value[at], textAt)
  else {
    const members = value as Record<string, unknown>
    for (const name in members) members[name] = restored(members[name], textAt)
  }
  return value
}

/**
 * The body with its long strings. `spans`: where these begin and end, in turn, with their quotes. `start`: where the body
 * begins. `parse` reads the rest, in which marks stand for them. Throws a SyntaxError for invalid JSON.
 */
export function withRawStrings(
  body: Buffer,
  spans: readonly number[],
  start: number,
  parse: (json: string) => unknown,
): Body {
  if (spans.length === 0) return { value: parse(utf8Text(body, start)) }
  const rawStrings = new RawStrings()
  let json = ''
  let at = start
  for (let span = 0; span < spans.length; span += 2) {
    const [from, to] = [spans[span]!, spans[span + 1]!]
    json += `${utf8Text(body, at, from)}"${markOf(rawStrings.size)}"`
    rawStrings.add(JSON.parse(utf8Text(body, from, to)) as string, body.subarray(from, to))
    at = to
  }
  const value = parse(json + utf8Text(body, at))
  return { value: restored(value, index => rawStrings.textAt(index)), rawStrings }
}
