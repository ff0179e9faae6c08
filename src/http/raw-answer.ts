/** Answers on sockets that no `ServerResponse` of `node:http` writes to. */
import { STATUS_CODES } from 'node:http'

/** The last answer of a connection, as bytes. `headers`: names and values in turn. */
export function rawAnswer(status: number, headers: readonly (string | number)[], body: string | Buffer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  head += `content-length: ${bytes.length}\r\nconnection: close\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}
