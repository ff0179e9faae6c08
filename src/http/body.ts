/** Reads a JSON request body: bounded, valid UTF-8, bounded in shape, free of prototype keys. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import secureJson from 'secure-json-parse'
import { errors } from '../core/error.ts'
import type { Intake } from './intake.ts'
import { readBytes } from './pieces.ts'
import { ShapeScan } from './scan.ts'

/** Bytes from which a body is read in turns with everybody else's. */
const LARGE = 1024 * 1024
/** Of the scan in one turn; a step takes up to 60 ns. */
const SCAN_STEPS = 200_000

/**
 * Throws 400, 408, 413, 415, 499 or 529 as a GatewayError. `res` is told to go on when the client waits for a 100.
 * `intake` is told what comes, and takes room for what of it will be kept.
 */
export async function readJson(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  intake: Intake,
): Promise<unknown> {
  const declared = checkHeaders(req, limit)
  if (declared !== undefined) intake.take(declared)
  if (/^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue()
  const body = await readBytes(req, limit, intake, declared)
  return body.length > LARGE ? await parseInTurns(body) : parse(body)
}

const rules = { protoAction: 'remove', constructorAction: 'remove' } as const

function parse(body: Buffer): unknown {
  if (!isUtf8(body)) throw notUtf8()
  const scan = new ShapeScan(body)
  scan.run()
  return freed(parsedOf(body, body.toString('utf8', startOf(body))), scan)
}

/** The same, letting others go on between its steps. */
async function parseInTurns(body: Buffer): Promise<unknown> {
  if (!isUtf8(body)) throw notUtf8()
  const scan = new ShapeScan(body)
  while (!scan.run(SCAN_STEPS)) await turn()
  await turn()
  const text = body.toString('utf8', startOf(body))
  await turn()
  const value = parsedOf(body, text)
  await turn()
  return freed(value, scan)
}

function parsedOf(body: Buffer, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw notJson(body, cause)
  }
}

/** Without the keys that would reach a prototype. */
const freed = (value: unknown, { suspicious }: ShapeScan): unknown =>
  suspicious && typeof value === 'object' && value !== null ? secureJson.scan(value, rules) : value

/** Behind the byte order mark. */
const startOf = (body: Buffer): number => (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0)

const notUtf8 = () => errors.invalidJson('it is not valid UTF-8.')
const notJson = (body: Buffer, cause: unknown) =>
  errors.invalidJson(body.length === 0 ? 'it is empty.' : describe(cause))

/** The length that is declared, if one is. */
function checkHeaders(req: IncomingMessage, limit: number): number | undefined {
  const type = req.headers['content-type']
  if (
    !/^application\/json\s*(;\s*charset="?utf-8"?\s*)?(;.*)?$/i.test(type ?? '') ||
    /charset=(?!"?utf-8)/i.test(type ?? '')
  ) {
    throw errors.unsupportedMediaType(type)
  }
  const encoding = req.headers['content-encoding']
  if (encoding && encoding !== 'identity') throw errors.unsupportedEncoding(encoding)
  const declared = req.headers['content-length']
  if (declared === undefined) return undefined
  if (Number(declared) > limit) throw errors.tooLarge(limit)
  return Number(declared)
}

/** The parser's own words, without the piece of the body that it quotes. */
const describe = (cause: unknown): string =>
  cause instanceof SyntaxError
    ? `${cause.message.replace(/,? (\.{3})?"[\s\S]*"(\.{3})? is not valid JSON$/, '')}.`
    : 'it cannot be read.'
