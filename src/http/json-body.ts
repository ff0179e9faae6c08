/** Reads a JSON request body: bounded, valid UTF-8, bounded in shape, free of prototype keys. */
import { isUtf8 } from 'node:buffer'
import secureJson from 'secure-json-parse'
import { type Place, parseBody } from '../json/lossless.ts'
import type { Body } from '../json/raw-strings.ts'
import { errors } from '../lib/error.ts'
import { utf8Text } from '../lib/utf8.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { BodyGuard } from './body-guard.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { withRawStrings } from './long-strings.ts'
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
