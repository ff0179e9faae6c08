/** Reads a JSON request body: bounded, valid UTF-8, bounded in shape, free of prototype keys. */
import { isUtf8 } from 'node:buffer'
import secureJson from 'secure-json-parse'
import { errors } from '../core/error.ts'
import { bodySteps, type Place, parseBody } from '../core/lossless-json.ts'
import type { Body } from '../core/raw-strings.ts'
import { turnBudget } from '../lib/turn-budget.ts'
import { atOnce, turns } from '../lib/turns.ts'
import type { BodyGuard } from './body-guard.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { LongStrings } from './long-strings.ts'
import { readBytes } from './pieces.ts'
import { ShapeScan } from './scan.ts'

/** Bytes up to which a body is read at once, where its scan takes few steps; any other one in turns. */
const SMALL = 128 * 1024
/** Of such a scan: what is parsed of so many costs about as much as a small request does besides. */
const FEW_STEPS = 4096
/** Bytes from which what is read at once waits where a turn of the loop is full: 128 KiB take up to half a millisecond. */
const BUDGETED = 16 * 1024
/** Bytes from which its long strings are parsed in steps. */
const LARGE = 1024 * 1024
/** Of the scan in one turn; a step takes up to 60 ns. */
const SCAN_STEPS = 200_000
/** Of long strings parsed in one turn. */
const STEP_BYTES = 256 * 1024
/** Bytes up to which a body that is no JSON is parsed once more, to say where: in one piece. */
const LOCATED = 4 * LARGE
const POSITION = / at position \d+( \(line \d+ column \d+\))?/
/** Bytes from which a body's long strings are kept as they were written. */
const RAW_STRINGS = 16 * 1024
/**
 * Values from which what is no long string is parsed in steps, as it is above `LARGE` bytes: names that all differ take a
 * microsecond each.
 */
const MANY_VALUES = 20_000

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
  const turn = body.length > BUDGETED && body.length <= SMALL ? turnBudget.next(guard.tenant) : undefined
  if (turn) await turn
  const steps = parsing(body, guard, exact, values)
  const { done, value } = steps.next()
  return done ? value : await turns.run(guard.tenant, steps)
}

const rules = { protoAction: 'remove', constructorAction: 'remove' } as const

/** Yields wherever others may go on: never for what is read at once. */
function* parsing(
  body: Buffer,
  guard: BodyGuard,
  exact: Place | undefined,
  values: number | undefined,
): Generator<undefined, Body> {
  const isLarge = body.length > SMALL
  if (isLarge) yield
  if (!isUtf8(body)) throw notUtf8()
  const scan = new ShapeScan(body, values)
  const isQuick = !isLarge && scan.run(FEW_STEPS)
  if (!isQuick) {
    do yield
    while (!scan.run(SCAN_STEPS))
  }
  const { structure } = scan
  if (structure > body.length) guard.parse(structure - body.length)
  if (!isQuick) yield
  const whole = body.length < RAW_STRINGS ? parsed(body, exact) : yield* withLong(body, scan, exact, isQuick)
  if (!isQuick) yield
  return freed(whole, scan)
}

function* withLong(
  body: Buffer,
  { long, values }: ShapeScan,
  exact: Place | undefined,
  isQuick: boolean,
): Generator<undefined, Body> {
  // What is read at once is not cut: each cut copies.
  const piece = body.length > LARGE ? STEP_BYTES : body.length
  const strings = new LongStrings(body, long, startOf(body), piece)
  try {
    for (let rested = 0; strings.step(); ) {
      if (strings.at - rested < STEP_BYTES) continue
      rested = strings.at
      yield
    }
    const rest = isQuick ? atOnce(strings.rest()) : yield* strings.rest()
    if (isQuick) return strings.whole(parseBody(rest, exact))
    yield
    const inSteps = values > MANY_VALUES || rest.length > LARGE
    const value = inSteps ? yield* bodySteps(rest, exact) : parseBody(rest, exact)
    yield
    return strings.whole(value)
  } catch (cause) {
    if (body.length > LOCATED) throw errors.invalidJson(describe(cause).replace(POSITION, ''))
    return parsed(body, exact)
  }
}

/** Parses the whole body at once, so that an error has its exact position. */
function parsed(body: Buffer, exact: Place | undefined): Body {
  try {
    return { value: parseBody(body.toString('utf8', startOf(body)), exact) }
  } catch (cause) {
    throw notJson(body, cause)
  }
}

/** Without the keys that would reach a prototype. */
function freed(body: Body, { suspicious, values }: ShapeScan): Body {
  const { value, rawStrings } = body
  if (!suspicious || typeof value !== 'object' || value === null) return { value, rawStrings, values }
  return { value: secureJson.scan(value, rules), rawStrings, values }
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
