/** The chunks of an answer without a length (RFC 9112 section 7.1), and bytes in one piece or several. */

/** Content of an answer: text, its bytes, or pieces of them. */
export type BodyData = string | Buffer | readonly Buffer[]

export const isList = (data: BodyData): data is readonly Buffer[] => Array.isArray(data)

/** Without a copy of bytes. */
export const piecesOf = (data: BodyData): readonly Buffer[] =>
  isList(data) ? data : [typeof data === 'string' ? Buffer.from(data) : data]

/** In bytes. */
export const sizeOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, piece) => sum + piece.length, 0)

export const CRLF = Buffer.from('\r\n')

/** One chunk. */
export function asChunk(data: string | Buffer): string | Buffer {
  const head = `${Buffer.byteLength(data).toString(16)}\r\n`
  return typeof data === 'string' ? `${head}${data}\r\n` : Buffer.concat([Buffer.from(head), data, CRLF])
}

/** Encodes the remaining data and the final chunk. */
export function asLastChunk(data: string | Buffer): string | Buffer {
  const end = '0\r\n\r\n'
  if (data.length === 0) return end
  const chunk = asChunk(data)
  return typeof chunk === 'string' ? chunk + end : Buffer.concat([chunk, Buffer.from(end)])
}
