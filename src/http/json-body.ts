/** Reads a JSON request body: bounded, valid UTF-8, bounded in shape, free of prototype keys. */

import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import secureJson from 'secure-json-parse'
import { type Place, parseBody } from '../json/lossless.ts'
import { type Body, RawStrings } from '../json/raw-strings.ts'
import { errors } from '../lib/error.ts'
import { utf8Text } from '../lib/utf8.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { BodyGuard } from './body-guard.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { readBytes } from './pieces.ts'
import { ShapeScan } from './scan.ts'

/** Size from which parsing a body is scheduled: it takes half a millisecond and more. */
const SCHEDULED_BYTES = 64 * 1024
/** Size up to which an invalid body is parsed a second time, to find the position of the error. */
const MAX_LOCATED_BYTES = 4 * 1024 * 1024
const POSITION = / at position \d+( \(line \d+ column \d+\))?/
/** Size from which the long strings of a body are kept as they were written. */
const RAW_STRINGS_BYTES = 16 * 1024

/**
 * Rejects with 400, 408, 413, 499 or 529 as a GatewayError. `declared` is the length that the client announced;
 * `guard` takes memory for what arrives, and ends a body that comes too slowly. `values`: how many it may hold.
 */
export async function readJson(
  req: IncomingRequest,
  limit: number,
  guard: BodyGuard,
  declared: number | undefined,
  exact?: Place,
  values?: number,
): Promise<Body> {
  const body = await readBytes(req, limit, guard, declared)
  const parts = parsed(body, guard, exact, values)
  if (body.length >= SCHEDULED_BYTES) return scheduler.runAll(guard.tenant, parts)
  for (;;) {
    const { done, value } = parts.next()
    if (done) return value
  }
}

const rules = { protoAction: 'remove', constructorAction: 'remove' } as const

function* parsed(body: Buffer, guard: BodyGuard, exact?: Place, values?: number): Generator<void, Body> {
  if (!isUtf8(body)) throw notUtf8()
  const scan = new ShapeScan(body, values)
  scan.run()
  if (scan.structure > body.length) guard.parse(scan.structure - body.length)
  const { value, rawStrings } =
    body.length < RAW_STRINGS_BYTES ? plain(body, exact) : yield* withLong(body, scan, exact)
  const isUnsafe = scan.suspicious && typeof value === 'object' && value !== null
  return {
    value: isUnsafe ? secureJson.scan(value, rules) : value,
    rawStrings,
    values: scan.values,
    bytes: body.length,
  }
}

function* withLong(body: Buffer, { long }: ShapeScan, exact: Place | undefined): Generator<void, Body> {
  try {
    return yield* withRawStrings(body, long, startOf(body), json => parseBody(json, exact))
  } catch (cause) {
    if (body.length > MAX_LOCATED_BYTES) throw errors.invalidJson(describe(cause).replace(POSITION, ''))
    return plain(body, exact)
  }
}

/** Parses the body in one piece, so that an error has its exact position. */
function plain(body: Buffer, exact: Place | undefined): Body {
  try {
    return { value: parseBody(utf8Text(body, startOf(body)), exact) }
  } catch (cause) {
    throw notJson(body, cause)
  }
}

/** Behind the byte order mark. */
const startOf = (body: Buffer): number => (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0)

const notUtf8 = () => errors.invalidJson('it is not valid UTF-8.')
const notJson = (body: Buffer, cause: unknown) =>
  errors.invalidJson(body.length === 0 ? 'it is empty.' : describe(cause))

/** The parser's own words, without the piece of the body that it quotes. */
const describe = (cause: unknown): string =>
  cause instanceof SyntaxError
    ? `${cause.message.replace(/,? (\.{3})?"[\s\S]*"(\.{3})? is not valid JSON$/, '')}.`
    : 'it cannot be read.'

/**
 * Stands in JSON text for a long string while the rest is parsed. Random, so that no text contains it; letters only, so
 * that it is base64, and nothing that JSON escapes.
 */
const MARK = [...randomBytes(24)].map(byte => String.fromCharCode(0x61 + (byte & 15))).join('')
const DIGITS = 8
/** Bytes of long strings that are read in one part. */
const PART_BYTES = 4 * 1024 * 1024
/** More than the cut between two parts moves. */
const MIN_PART_BYTES = 16
const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Bytes of the longest escape. */
const UNICODE_ESCAPE = 6
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
 * begins. `parse` reads the rest, in which marks stand for them. Yields between parts that take some milliseconds each.
 * Throws a SyntaxError for invalid JSON.
 */
function* withRawStrings(
  body: Buffer,
  spans: readonly number[],
  start: number,
  parse: (json: string) => unknown,
): Generator<void, Body> {
  if (spans.length === 0) return { value: parse(utf8Text(body, start)) }
  const rawStrings = new RawStrings()
  let json = ''
  let at = start
  let room = PART_BYTES
  for (let span = 0; span < spans.length; span += 2) {
    const [from, to] = [spans[span]!, spans[span + 1]!]
    json += `${utf8Text(body, at, from)}"${markOf(rawStrings.size)}"`
    let text = ''
    for (let next = from + 1; next < to - 1; ) {
      if (room < MIN_PART_BYTES) {
        yield
        room = PART_BYTES
      }
      const end = next + room < to - 1 ? cutAt(body, next, next + room) : to - 1
      text += JSON.parse(`"${utf8Text(body, next, end)}"`)
      room -= end - next
      next = end
    }
    rawStrings.add(text, body.subarray(from, to))
    at = to
  }
  if (room < PART_BYTES) yield
  const value = parse(json + utf8Text(body, at))
  return { value: restored(value, index => rawStrings.textAt(index)), rawStrings }
}

/** The nearest place up to `at` where a string that begins at `from` may be cut: within no character and no escape. */
function cutAt(body: Buffer, from: number, at: number): number {
  let cut = at
  while ((body[cut]! & 0xc0) === 0x80) cut--
  const near = Math.max(from, cut - UNICODE_ESCAPE + 1)
  const slash = near + body.subarray(near, cut).lastIndexOf(BACKSLASH)
  if (slash < near) return cut
  let first = slash
  while (first > from && body[first - 1] === BACKSLASH) first--
  // The second one of two backslashes begins no escape.
  const begins = (slash - first) % 2 === 0
  const length = body[slash + 1] === LOWER_U ? UNICODE_ESCAPE : 2
  return begins && slash + length > cut ? slash : cut
}
