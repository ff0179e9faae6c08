/** Opens WebSockets (RFC 6455). */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type ClientOptions, WebSocket } from 'ws'
import type { MessageSocket } from '../core/message-socket.ts'
import { socketBounds, TextSocket } from '../lib/text-socket.ts'

/** A refusal of a server that was asked for a WebSocket. */
export interface RefusedUpgrade {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** As much of it as `limit` allows. */
  readonly body: Buffer
}

export interface ConnectOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Bytes of a message. */
  readonly limit: number
  /** Milliseconds for the connection and the handshake. */
  readonly timeoutMs: number
  /** Opens the connection; it is a TLS one where the URL says so. */
  connect(done: (error: Error | null, socket: Socket | null) => void): void
}

/** Nothing answered in time. */
export class HandshakeTimeout extends Error {}

/** Bytes of a refusal's body. */
const MAX_REFUSAL = 64 * 1024

/** Resolves with what answered. Rejects where nothing did. */
export function connectMessages(options: ConnectOptions): Promise<MessageSocket | RefusedUpgrade> {
  const { url, headers, limit, timeoutMs, connect } = options
  return new Promise((resolve, reject) => {
    let connected: Socket | undefined
    const createConnection = (_: unknown, done: (error: Error | null, socket: Socket | null) => void) => {
      connect((error, socket) => {
        connected = socket ?? undefined
        done(error, socket)
      })
    }
    const ws = new WebSocket(url, {
      ...socketBounds(limit),
      headers: { ...headers },
      followRedirects: false,
      createConnection: createConnection as unknown as NonNullable<ClientOptions['createConnection']>,
    })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      ws.terminate()
    }, timeoutMs)
    ws.once('open', () => {
      clearTimeout(timer)
      ws.off('error', failed)
      resolve(new TextSocket(ws, connected!))
    })
    ws.once('unexpected-response', (_, response: IncomingMessage) => {
      void bodyOf(response).then(body => {
        clearTimeout(timer)
        ws.terminate()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
      })
    })
    const failed = (error: Error) => {
      clearTimeout(timer)
      reject(isLate ? new HandshakeTimeout() : error)
    }
    ws.on('error', failed)
  })
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size >= MAX_REFUSAL) break
    }
  } catch {
    // What came of it will do.
  }
  return Buffer.concat(chunks).subarray(0, MAX_REFUSAL)
}
