/** Connections to servers that others may name: what their TLS may cost the event loop is bounded. */
import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { DEFAULT_CIPHERS } from 'node:tls'
import { buildConnector } from 'undici'

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
