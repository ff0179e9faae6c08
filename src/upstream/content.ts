/** The body of a request to a provider, in the form in which it is sent. */
import { randomUUID } from 'node:crypto'
import type { FilePart, WireRequest } from '../core/wire.ts'
import { stringifyLossless } from '../json/lossless.ts'
import type { RawStrings } from '../json/raw-strings.ts'

/** A body with its content type; undefined where the request's own headers say it, and for none. */
export interface Content {
  readonly type: string | undefined
  /** Text, what it is in UTF-8, or the pieces of what is too large to be put together. Undefined for none. */
  readonly body: string | Buffer | readonly Buffer[] | undefined
}

/** The content type of bodies that are made from an object. */
export const JSON_TYPE = 'application/json'

/** `rawStrings`: long strings as the client wrote them. */
export function bodyOf({ method = 'POST', body, files, bytes }: WireRequest, rawStrings?: RawStrings): Content {
  if (method !== 'POST') return { type: undefined, body: undefined }
  if (bytes) return { type: undefined, body: bytes }
  if (files) return formOf(body, files)
  const json = rawStrings ? rawStrings.stringify(body) : stringifyLossless(JSON.stringify(body))
  return { type: JSON_TYPE, body: json }
}

/** The bytes of a body: UTF-8 for text, the sum for pieces. */
export const sizeOf = (body: Exclude<Content['body'], undefined>): number =>
  typeof body === 'string'
    ? Buffer.byteLength(body)
    : Buffer.isBuffer(body)
      ? body.length
      : body.reduce((sum, { length }) => sum + length, 0)

/** As RFC 7578 and the WHATWG write it; no file is copied. */
function formOf(fields: WireRequest['body'], files: readonly FilePart[]): Content {
  const boundary = `form-${randomUUID()}`
  const pieces: Buffer[] = []
  let text = ''
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === undefined || item === null) continue
      const shown = typeof item === 'object' ? JSON.stringify(item) : String(item)
      text += `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"\r\n\r\n${shown}\r\n`
    }
  }
  for (const { name, filename, contentType, pieces: content } of files) {
    const disposition = `form-data; name="${quoted(name)}"; filename="${quoted(filename)}"`
    text += `--${boundary}\r\ncontent-disposition: ${disposition}\r\ncontent-type: ${contentType}\r\n\r\n`
    pieces.push(Buffer.from(text))
    for (const piece of content) pieces.push(piece)
    text = '\r\n'
  }
  pieces.push(Buffer.from(`${text}--${boundary}--\r\n`))
  return { type: `multipart/form-data; boundary=${boundary}`, body: pieces }
}

/** The three characters that would end a name early. */
const quoted = (name: string): string =>
  name.replace(/[\r\n"]/g, char => (char === '"' ? '%22' : char === '\r' ? '%0D' : '%0A'))

/** A body in pieces on its way out: each is let go when it was given to the socket. */
export class PiecewiseBody implements Iterable<Buffer> {
  #pieces: readonly Buffer[]
  /** All pieces were given to the socket. */
  isSent = false

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces
  }

  *[Symbol.iterator](): Generator<Buffer> {
    const pieces = this.#pieces
    this.#pieces = []
    for (const piece of pieces) yield piece
    this.isSent = true
  }
}
