/** Reads a `multipart/form-data` body as it comes (media.md section 1.3): each file once, in the pieces of the socket. */
import type { IncomingMessage } from 'node:http'
import busboy, { type Busboy } from 'busboy'
import { Form, Upload } from '../core/body.ts'
import { asError, errors } from '../core/error.ts'
import type { BodyGuard } from './body-guard.ts'
import { readPieces } from './pieces.ts'

/** One part more than is taken, so that too many are told from all. */
const LIMITS = { parts: 65, files: 17, fieldSize: 1024 * 1024, fieldNameSize: 200 }

/** Rejects with 400 `invalid_form_data`, 408, 413, 499 or 529 as a GatewayError. */
export async function readForm(req: IncomingMessage, limit: number, guard: BodyGuard): Promise<Form> {
  const form = new Form()
  const parser = parserOf(req)
  const parsed = new Promise<void>((resolve, reject) => {
    collect(parser, form, reject)
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

function parserOf({ headers }: IncomingMessage): Busboy {
  try {
    return busboy({ headers, limits: LIMITS, defParamCharset: 'utf8' })
  } catch (cause) {
    throw errors.invalidFormData(describe(cause))
  }
}

/** Adds parts to `form`; `fail` is called with the first that cannot be. */
function collect(parser: Busboy, form: Form, fail: (error: unknown) => void): void {
  parser.on('field', (name, text, { nameTruncated, valueTruncated, mimeType }) => {
    if (!name || nameTruncated) fail(errors.invalidFormData('a part has no name, or one longer than 200 bytes'))
    else if (valueTruncated) fail(errors.partTooLarge(name, LIMITS.fieldSize))
    else if (!mimeType.startsWith('text/') && mimeType !== 'application/json') {
      fail(errors.invalidFormData(`the part "${name}" is ${mimeType} and has no file name; add one`))
    } else form.addText(name, text)
  })
  parser.on('file', (name, stream, { filename, mimeType }) => {
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => void pieces.push(piece))
    stream.on('error', cause => fail(errors.invalidFormData(describe(cause))))
    stream.on('end', () => {
      if (name) form.addFile(name, new Upload(pieces, mimeType.toLowerCase(), extensionOf(filename)))
      else fail(errors.invalidFormData('a file has no name'))
    })
  })
  const tooMany = () => fail(errors.invalidFormData(`it has more than ${LIMITS.parts - 1} parts`))
  parser.on('partsLimit', tooMany)
  parser.on('fieldsLimit', tooMany)
  parser.on('filesLimit', () => fail(errors.invalidFormData(`it has more than ${LIMITS.files - 1} files`)))
}

const extensionOf = (name: string | undefined): string =>
  /\.([A-Za-z0-9]{1,8})$/.exec(name ?? '')?.[1]?.toLowerCase() ?? ''

const describe = (cause: unknown): string =>
  cause instanceof Error ? cause.message.replace(/^Multipart: /, '').toLowerCase() : 'it cannot be read'
