/** Answers requests for WebSockets (RFC 6455). */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import type { MessageSocket, UpgradeOptions } from '../core/message-socket.ts'
import { socketBounds, TextSocket } from '../lib/text-socket.ts'

/** How a WebSocket is accepted. */
interface AcceptOptions extends UpgradeOptions {
  /** Headers of the 101: names and values in turn. */
  readonly headers: readonly string[]
}

/** Answers an upgrade request with 101. Throws where it is none, or its client has left. */
export function acceptMessages(
  req: IncomingMessage,
  socket: Socket,
  head: Buffer,
  options: AcceptOptions,
): MessageSocket {
  const { limit, protocol, headers } = options
  const server = new WebSocketServer({
    ...socketBounds(limit),
    noServer: true,
    clientTracking: false,
    handleProtocols: offered => offered.has(protocol) && protocol,
  })
  let refused: Error | undefined
  server.on('wsClientError', (error: Error) => {
    refused = error
  })
  server.on('headers', (lines: string[]) => {
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  })
  let accepted: MessageSocket | undefined
  // It calls back before it returns, or never.
  server.handleUpgrade(req, socket, head, ws => {
    accepted = new TextSocket(ws, socket)
  })
  if (accepted) return accepted
  throw refused ?? new Error('the client has left')
}

/** Whether a request is for a WebSocket, by its Upgrade header. `acceptMessages` needs `isHandshake` too. */
export const asksForMessages = ({ headers, method }: Pick<IncomingMessage, 'headers' | 'method'>): boolean =>
  method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
/** Whether version and key are as RFC 6455 section 4.2.1 requires. */
export const isHandshake = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['sec-websocket-version'] === '13' && KEY.test(headers['sec-websocket-key'] ?? '')
const KEY = /^[+/0-9A-Za-z]{22}==$/
