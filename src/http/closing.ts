/** Gives a connection its last answer: one whose request was not read to its end, or a gateway that stops. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { IncomingRequest } from './incoming-request.ts'

/** How long a client may go on sending what is not read. */
const LINGER_MS = 1000

const closing = new WeakSet<Socket>()

/** Whether the connection has had its last answer: `node:http` would go on to run what was pipelined behind it. */
export const isClosing = (socket: Socket): boolean => closing.has(socket)

/** Discards everything that the connection receives from now on. */
export function stopListening(socket: Socket): void {
  closing.add(socket)
}

/**
 * Ends an answer that said `connection: close`. What the client still sends is dropped for a moment: a connection
 * that is closed over unread bytes is reset, and the client would lose the answer.
 */
export function endLast(req: IncomingRequest, res: ServerResponse, body: string | Buffer): void {
  stopListening(req.socket)
  if (req.complete) {
    res.end(body)
    return
  }
  res.write(body)
  const timer = setTimeout(() => res.end(), LINGER_MS)
  req.once('end', () => res.end())
  res.once('close', () => clearTimeout(timer))
  req.linger()
}

/** Ends a socket without a `ServerResponse`, after a complete request. */
export function endSocket(socket: Socket, answer: Buffer): void {
  stopListening(socket)
  socket.end(answer)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('end', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
}

/** The last answer of a connection, as bytes. `headers`: names and values in turn. */
export function rawAnswer(status: number, headers: readonly (string | number)[], body: string | Buffer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  head += `content-length: ${bytes.length}\r\nconnection: close\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}
