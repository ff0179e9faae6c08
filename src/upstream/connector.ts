/** Connections to servers that others may name: what their TLS may cost the event loop is bounded. */
import { constants } from 'node:crypto'
import { Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import { DEFAULT_CIPHERS, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import { type Handshake, type HandshakeBudget, type HandshakeSocket, handshakeBudget } from './handshake-budget.ts'
import { type TlsProgress, TlsRecords } from './tls-records.ts'

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

/** Bytes that one read of the system brings at most: where more is there, an answer has paused. */
const ONE_READ = 64 * 1024
/** Of those, what is read at once: no more than a socket keeps before it stops reading, which reading more would raise. */
const SLICE = 16 * 1024

/** As undici's, with the socket that connects; undefined where none is opened. */
export type Connector = (...given: Parameters<buildConnector.connector>) => Socket | undefined

/** undici's, for http and https. */
export function boundedConnector(options: buildConnector.BuildOptions): Connector {
  const connect = buildConnector({ ciphers: CIPHERS, secureOptions: constants.SSL_OP_NO_RENEGOTIATION, ...options })
  return (target, callback) => {
    // The types of undici leave out that it returns the socket.
    const connecting: unknown = connect(target, (...result) => {
      const [, socket] = result
      if (socket) {
        boundTickets(socket)
        boundReading(socket)
      }
      callback(...result)
    })
    return connecting instanceof Socket ? connecting : undefined
  }
}

function boundTickets(socket: Socket): void {
  let tickets = 0
  socket.on('session', () => {
    if (++tickets > MAX_TICKETS) socket.destroy(new Error(`the server sends more than ${MAX_TICKETS} session tickets`))
  })
}

/**
 * undici reads all that a socket has, and puts back what is left where its answer pauses. Reading all begins the next read of
 * the system: an answer that pauses before it has used as much would be kept whole, and copied as often as it pauses. With
 * `onread` any `read` of a socket begins it; that of streams does where little is left.
 */
function boundReading(socket: Socket): void {
  const { read } = socket
  socket.read = size =>
    size === undefined && socket.readableLength > ONE_READ
      ? Duplex.prototype.read.call(socket, SLICE)
      : read.call(socket, size)
}

/** How the connections of a tenant are made and paid for. */
interface TenantOptions {
  readonly lookup?: TcpNetConnectOpts['lookup']
  readonly budget?: HandshakeBudget
}

/** A connector whose TLS is read record by record in turns of `tenant`, which pays for the handshakes. */
export function withBudget(
  connect: Connector,
  tenant: string,
  { lookup, budget = handshakeBudget }: TenantOptions = {},
): Connector {
  return (target, callback) => {
    if (target.protocol !== 'https:') return connect(target, callback)
    const { hostname, port } = target
    const records = new TlsRecords({ host: hostname, port: Number(port || 443), ...(lookup && { lookup }) }, tenant)
    let handshake: Handshake | undefined
    let hasEnded = false
    // The types of undici leave out that any stream will do.
    const options = Object.assign({}, target, { httpSocket: records as Duplex as Socket })
    const connecting = connect(options, (...result) => {
      const [, socket] = result
      hasEnded = true
      if (handshake) budget.end(handshake, socket instanceof TLSSocket && socket.authorized)
      callback(...result)
    })
    if (connecting instanceof TLSSocket) {
      records.progress = progressOf(connecting)
      records.below.once('connect', () => {
        standFor(connecting, records.below)
        if (!hasEnded) handshake = budget.begin(tenant, handshakeSocket(records))
      })
    }
    return connecting
  }
}

function progressOf(socket: TLSSocket): TlsProgress {
  const progress = {
    handshakeEnded: false,
    get bytes() {
      return socket.bytesRead
    },
  }
  socket.once('secure', () => {
    progress.handshakeEnded = true
  })
  return progress
}

const handshakeSocket = (records: TlsRecords): HandshakeSocket => ({
  received: () => records.received,
  pause: () => records.stop(),
  resume: () => records.go(),
})

/** What Node passes on where TLS is read from a connection of its own. */
function standFor(socket: TLSSocket, below: Socket): void {
  socket.allowHalfOpen = false
  Object.defineProperties(socket, {
    remoteAddress: { value: below.remoteAddress },
    ref: { value: () => below.ref() && socket },
    unref: { value: () => below.unref() && socket },
  })
}
