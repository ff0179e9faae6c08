/** The WebSockets of the demo provider. */
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { isObject } from '../core/json.ts'
import type { SimulatedSession } from '../core/operation.ts'

/** Bytes of a message. */
const LIMIT = 16 * 1024 * 1024

/** Serves sessions by their paths; returns what ends them all. */
export function serveSessions(server: Server, sessions: ReadonlyMap<string, SimulatedSession>): () => void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: LIMIT })
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { pathname, search } = new URL(req.url ?? '/', 'http://demo')
    const session = sessions.get(pathname)
    if (!session) {
      socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      return
    }
    sockets.handleUpgrade(req, socket, head, ws => begin(ws, session, search))
  })
  return () => {
    for (const ws of sockets.clients) ws.terminate()
    sockets.close()
  }
}

function begin(ws: WebSocket, session: SimulatedSession, query: string): void {
  const take = session(event => ws.send(JSON.stringify(event)), query)
  ws.on('error', () => undefined)
  ws.on('message', (data: Buffer) => {
    const event: unknown = JSON.parse(data.toString('utf8'))
    if (isObject(event)) take(event)
  })
}
