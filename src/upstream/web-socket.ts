/** Opens WebSockets (RFC 6455). */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { MessageSocket } from '../core/message-socket.ts'
import { guarded } from '../lib/guarded.ts'
import { socketBounds, TextSocket } from '../lib/text-socket.ts'
import { MAX_ERROR_BYTES } from '../wire/upstream-error.ts'

/** The answer of a server that refuses a WebSocket. */
export interface RefusedUpgrade {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The first `MAX_ERROR_BYTES` bytes, fewer where the connection ends before. */
  readonly body: Buffer
}

/** Settings of one handshake. */
interface HandshakeOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Maximum bytes of a message. */
  readonly limit: number
  /** Milliseconds for the handshake. */
  readonly timeoutMs: number
  /** The connection to the server of `url`, with TLS where that says so. It is closed with the WebSocket. */
  readonly socket: Socket
}

/** The server did not answer the handshake in time. */
export class HandshakeTimeout extends Error {}

/** Resolves with the WebSocket or with the server's refusal. Rejects where the connection fails, or with a HandshakeTimeout. */
export function openWebSocket(options: HandshakeOptions): Promise<MessageSocket | RefusedUpgrade> {
  const { url, headers, limit, timeoutMs, socket } = options
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(url, {
      ...socketBounds(limit),
      headers: { ...headers },
      followRedirects: false,
      createConnection: () => socket,
    })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      ws.terminate()
    }, timeoutMs)
    const opened = () => {
      clearTimeout(timer)
      ws.off('error', failed)
      resolve(new TextSocket(ws, socket))
    }
    ws.once('open', guarded(opened, reject))
    const refused = (_: unknown, response: IncomingMessage) => {
      void bodyOf(response).then(body => {
        clearTimeout(timer)
        ws.terminate()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
      }, reject)
    }
    ws.once('unexpected-response', guarded(refused, reject))
    const failed = (error: Error) => {
      clearTimeout(timer)
      reject(isLate ? new HandshakeTimeout() : error)
    }
    ws.on('error', failed)
  })
}

/** Resolves when the response closes, whether it was whole or not: the status alone is an answer. */
function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    if (size >= MAX_ERROR_BYTES) response.destroy()
  })
  return new Promise(resolve => {
    response.once('close', () => resolve(Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES)))
  })
}
