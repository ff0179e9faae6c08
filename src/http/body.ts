/** Reads a request's body as its endpoint takes it. */

import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import busboy, { type Busboy, type FieldInfo, type FileInfo } from 'busboy'
import type { Endpoint } from '../core/endpoint.ts'
import type { Body } from '../json/raw-strings.ts'
import { type BodyType, Form, Upload } from '../lib/body.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import { guarded } from '../lib/guarded.ts'
import type { BodyGuard } from './body-guard.ts'
import { codingOf } from './content-coding.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { readJson } from './json-body.ts'
import { readBytes, readPieces } from './pieces.ts'

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

const LIMITS = { parts: 65, files: 16, fieldSize: 1024 * 1024 }
/** busboy counts the end of a form as a part. */
const MAX_PARTS = LIMITS.parts - 1
const MAX_NAME_CHARACTERS = 200

/** Rejects with 400 `invalid_form_data`, 408, 413, 499 or 529 as a GatewayError. */
async function readForm(req: IncomingRequest, limit: number, guard: BodyGuard): Promise<Form> {
  const form = new Form()
  const parser = parserOf(req)
  const parsed = new Promise<void>((resolve, reject) => {
    collect(parser, form, bytes => guard.take(bytes), reject)
    parser.on('error', cause => reject(errors.invalidFormData(describe(cause))))
    parser.on('close', resolve)
  })
  const read = readPieces(req, limit, guard, { add: chunk => void parser.write(chunk) }).then(() => void parser.end())
  try {
    await Promise.all([read, parsed])
  } catch (thrown) {
    parser.destroy()
    guard.abort(asError(thrown))
    // The other of the two may fail as well, and says nothing that the first has not said.
    await Promise.allSettled([read, parsed])
    throw thrown
  }
  return form
}

function parserOf({ headers }: IncomingRequest): Busboy {
  try {
    return busboy({ headers, limits: LIMITS, defParamCharset: 'utf8' })
  } catch (cause) {
    throw errors.invalidFormData(describe(cause))
  }
}

/** Adds parts to `form`; `fail` is called with the first that cannot be. `take`: memory beside the form itself. */
function collect(parser: Busboy, form: Form, take: (bytes: number) => void, fail: (error: unknown) => void): void {
  const isNamed = (name: string | undefined): name is string =>
    name !== undefined && name !== '' && name.length <= MAX_NAME_CHARACTERS
  const unnamed = () =>
    fail(errors.invalidFormData(`a part has no name, or one longer than ${MAX_NAME_CHARACTERS} characters`))
  const field = (name: string, text: string, { valueTruncated, mimeType }: FieldInfo) => {
    if (!isNamed(name)) unnamed()
    else if (valueTruncated) fail(errors.partTooLarge(name, LIMITS.fieldSize))
    else if (!mimeType.startsWith('text/') && mimeType !== 'application/json') {
      fail(errors.invalidFormData(`the part "${name}" is ${mimeType} and has no file name; add one`))
    } else form.addText(name, text)
  }
  const file = (name: string, stream: Readable, { filename, mimeType }: FileInfo) => {
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => void pieces.push(piece))
    stream.on('error', cause => fail(errors.invalidFormData(describe(cause))))
    const ended = () => {
      if (isNamed(name)) form.addFile(name, new Upload(pieces, mimeType.toLowerCase(), extensionOf(filename), take))
      else unnamed()
    }
    stream.on('end', guarded(ended, fail))
  }
  parser.on('field', guarded(field, fail))
  parser.on('file', guarded(file, fail))
  const tooMany = () => fail(errors.invalidFormData(`it has more than ${MAX_PARTS} parts`))
  parser.on('partsLimit', tooMany)
  parser.on('fieldsLimit', tooMany)
  parser.on('filesLimit', () => fail(errors.invalidFormData(`it has more than ${LIMITS.files} files`)))
}

const extensionOf = (name: string | undefined): string =>
  /\.([A-Za-z0-9]{1,8})$/.exec(name ?? '')?.[1]?.toLowerCase() ?? ''

/** busboy says the same of a head that is longer than it reads. */
const MALFORMED_HEAD = 'Malformed part header'

const describe = (cause: unknown): string => {
  if (!(cause instanceof Error)) return 'it cannot be read'
  if (cause.message === MALFORMED_HEAD) return 'the head of a part is malformed, or longer than 16 KiB'
  return cause.message.replace(/^Multipart: /, '').toLowerCase()
}
