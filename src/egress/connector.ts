/** Connections to servers that others may name. */
import { constants } from 'node:crypto'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { DEFAULT_CIPHERS } from 'node:tls'
import { buildConnector } from 'undici'

/**
 * Without DHE: the server chooses the group, of up to 10,000 bits, and the client computes with it for 600 ms before it sees
 * a certificate. Servers that have nothing better are gone.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!DHE`

/** Bytes that one read of the system brings at most: where more is there, an answer has paused. */
const MAX_READ_BYTES = 64 * 1024
/** Bytes read at once: as many as a socket keeps before it stops reading. */
const READ_BYTES = 16 * 1024

/** As undici's, with the socket that connects; undefined where none is opened. */
export type Connector = (...given: Parameters<buildConnector.connector>) => Socket | undefined

/** undici's, for http and https. */
export function boundedConnector(options: buildConnector.BuildOptions): Connector {
  const connect = buildConnector({ ciphers: CIPHERS, secureOptions: constants.SSL_OP_NO_RENEGOTIATION, ...options })
  return (target, callback) => {
    // The types of undici leave out that it returns the socket.
    const connecting: unknown = connect(target, (...result) => {
      const [, socket] = result
      if (socket) boundReading(socket)
      callback(...result)
    })
    return connecting instanceof Socket ? connecting : undefined
  }
}

/**
 * undici reads all that a socket has, and puts back what is left where its answer pauses. Reading all begins the next read of
 * the system: an answer that pauses before it has used as much would be kept whole, and copied as often as it pauses. With
 * `onread` any `read` of a socket begins it; that of streams does where little is left.
 */
function boundReading(socket: Socket): void {
  const { read } = socket
  socket.read = size =>
    size === undefined && socket.readableLength > MAX_READ_BYTES
      ? Duplex.prototype.read.call(socket, READ_BYTES)
      : read.call(socket, size)
}
