/** Connections to servers that others may name: what their TLS may cost the event loop is bounded. */
import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { DEFAULT_CIPHERS, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import { isObject } from '../core/json.ts'
import { type Handshake, type HandshakeBudget, type HandshakeSocket, handshakeBudget } from './handshake-budget.ts'

/**
 * Without DHE: the server chooses the group, of up to 10,000 bits, and the client computes with it for 600 ms before it sees
 * a certificate. Servers that have nothing better are gone.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!DHE`
/**
 * Session tickets of one connection: servers send one to four. Each costs as much as a small message, and comes beside what is
 * read, so that no pause of reading holds it up.
 */
const MAX_TICKETS = 16

/** undici's, for http and https. */
export function boundedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ciphers: CIPHERS, secureOptions: constants.SSL_OP_NO_RENEGOTIATION, ...options })
  return (target, callback) =>
    connect(target, (...result) => {
      const [, socket] = result
      if (socket) boundTickets(socket)
      callback(...result)
    })
}

function boundTickets(socket: Socket): void {
  let tickets = 0
  socket.on('session', () => {
    if (++tickets > MAX_TICKETS) socket.destroy(new Error(`the server sends more than ${MAX_TICKETS} session tickets`))
  })
}

/** A connector whose https handshakes `tenant` pays for. Sockets must stop reading on `pause`, as those with `onread` do. */
export function withBudget(
  connect: buildConnector.connector,
  tenant: string,
  budget: HandshakeBudget = handshakeBudget,
): buildConnector.connector {
  return (options, callback) => {
    let handshake: Handshake | undefined
    let hasEnded = false
    // The types of undici leave out that it returns the socket.
    const connecting: unknown = connect(options, (...result) => {
      const [, socket] = result
      hasEnded = true
      if (handshake) budget.end(handshake, socket instanceof TLSSocket && socket.authorized)
      callback(...result)
    })
    if (!(connecting instanceof TLSSocket)) return
    // Reading begins in this turn, after all listeners.
    const begin = () => {
      if (!hasEnded) handshake = budget.begin(tenant, handshakeSocket(connecting))
    }
    connecting.once('connect', () => process.nextTick(begin))
  }
}

const handshakeSocket = (socket: TLSSocket): HandshakeSocket => ({
  received: () => receivedBy(socket),
  pause: () => socket.pause(),
  resume: () => socket.resume(),
})

/** `bytesRead` of a TLS socket counts what it deciphered; that of the connection below it is private. */
function receivedBy(socket: TLSSocket): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  const parent: unknown = isObject(handle) ? Reflect.get(handle, '_parent') : undefined
  const bytes: unknown = isObject(parent) ? Reflect.get(parent, 'bytesRead') : undefined
  return typeof bytes === 'number' ? bytes : undefined
}
