/** Reads a `multipart/form-data` body as it comes; files stay in the pieces of the socket (docs/contract.md#forms). */
import type { Readable } from 'node:stream'
import busboy, { type Busboy, type FieldInfo, type FileInfo } from 'busboy'
import { Form, Upload } from '../lib/body.ts'
import { asError, errors } from '../lib/error.ts'
import { guarded } from '../lib/guarded.ts'
import type { BodyGuard } from './body-guard.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { readPieces } from './pieces.ts'

const LIMITS = { parts: 65, files: 16, fieldSize: 1024 * 1024 }
/** busboy counts the end of a form as a part. */
const MAX_PARTS = LIMITS.parts - 1
const MAX_NAME_CHARACTERS = 200

/** Rejects with 400 `invalid_form_data`, 408, 413, 499 or 529 as a GatewayError. */
export async function readForm(req: IncomingRequest, limit: number, guard: BodyGuard): Promise<Form> {
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
