/** Reads a request's body as its endpoint takes it. */
import type { ServerResponse } from 'node:http'
import type { Endpoint } from '../core/endpoint.ts'
import type { Body } from '../json/raw-strings.ts'
import type { BodyType } from '../lib/body.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import type { BodyGuard } from './body-guard.ts'
import { codingOf } from './content-coding.ts'
import { readForm } from './form.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { readJson } from './json-body.ts'
import { readBytes } from './pieces.ts'

/**
 * Bounds of a body that the endpoint does not read. Clients send `{}` with DELETE, and proxies send an empty chunked
 * body with GET.
 */
const UNREAD = { bytes: 64 * 1024, chunks: 1024 }

/** Rules for reading the body of an endpoint. */
type BodyRules = Pick<Endpoint, 'body' | 'bodyLimit' | 'maxValues'> & {
  readonly codec: Pick<Endpoint['codec'], 'exact'>
}

/**
 * Rejects with 400, 408, 413, 415, 499 or 529 as a GatewayError. `res` sends a 100 when the client waits for it.
 * `guard` takes memory for what arrives, and ends a body that comes too slowly.
 */
export function readBody(
  req: IncomingRequest,
  res: ServerResponse,
  { body = 'json', bodyLimit, maxValues, codec }: BodyRules,
  guard: BodyGuard,
): Promise<Body> {
  try {
    const type = typeOf(req, body)
    if (type === 'none') return Promise.resolve({ value: undefined })
    const declared = checkHeaders(req, bodyLimit)
    // A form is held once: it is not parsed, and its files are sent in the pieces in which they came.
    if (type === 'multipart') guard.copies = 1
    if (declared !== undefined) guard.expect(declared)
    const { expect } = req.headers
    if (expect !== undefined && /^100-continue$/i.test(expect)) res.writeContinue()
    if (type === 'json') return readJson(req, bodyLimit, guard, declared, codec.exact, maxValues)
    if (type === 'raw') return readBytes(req, bodyLimit, guard, declared).then(value => ({ value }))
    return readForm(req, bodyLimit, guard).then(form => ({ value: form, release: () => release(form, guard) }))
  } catch (thrown) {
    return Promise.reject(thrown)
  }
}

/**
 * Drops a body that the endpoint does not read, as it comes, so that no answer keeps it while it lasts. `fail` is called
 * once where more comes than is dropped.
 */
export function dropBody(req: IncomingRequest, fail: (error: GatewayError) => void): void {
  req.on('data', () => {
    if (req.bytes <= UNREAD.bytes && req.chunks <= UNREAD.chunks) return
    req.pause()
    req.removeAllListeners('data')
    fail(takesNoBody())
  })
}

const takesNoBody = () => errors.badRequest('This endpoint takes no request body.')

function release(form: { release(): void }, guard: BodyGuard): void {
  form.release()
  guard.release()
}

const JSON_TYPE = /^application\/json\s*(;\s*charset="?utf-8"?\s*)?(;.*)?$/i
const OTHER_CHARSET = /charset=(?!"?utf-8)/i
const FORM_TYPE = /^multipart\/form-data\s*(;.*)?$/i

/** The first of the body types that the content type fits. Throws 415, which names those that are taken. */
function typeOf({ headers }: IncomingRequest, taken: BodyType | readonly BodyType[]): BodyType {
  const given = headers['content-type'] ?? ''
  if (typeof taken === 'string') {
    if (fits(taken, given)) return taken
    throw errors.unsupportedMediaType(headers['content-type'], [nameOf(taken)])
  }
  for (const type of taken) if (fits(type, given)) return type
  throw errors.unsupportedMediaType(headers['content-type'], taken.map(nameOf))
}

function fits(type: BodyType, given: string): boolean {
  if (type === 'json') return given === 'application/json' || (JSON_TYPE.test(given) && !OTHER_CHARSET.test(given))
  return type !== 'multipart' || FORM_TYPE.test(given)
}

const nameOf = (type: BodyType): string => (type === 'json' ? 'application/json' : 'multipart/form-data')

/** The length of the plain body, if it is declared. */
function checkHeaders(req: IncomingRequest, limit: number): number | undefined {
  const isPacked = codingOf(req) !== undefined
  const declared = req.headers['content-length']
  if (declared === undefined) return undefined
  if (Number(declared) > limit) throw errors.tooLarge(limit)
  return isPacked ? undefined : Number(declared)
}
