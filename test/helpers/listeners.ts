/** Servers in the test process that a gateway may fetch from, or must never reach. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createListener } from 'node:net'
import type { Scope } from './child.ts'

/** The port of a file server that closes with the test. */
export async function fileServer(t: Scope, serve: RequestListener): Promise<number> {
  const server = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

export interface Canary {
  readonly port: number
  /** Number of connections. */
  readonly visits: number
}

/** Counts connections, of which there should be none. */
export async function canary(t: Scope): Promise<Canary> {
  let visits = 0
  const listener = createListener(socket => {
    visits++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => void listener.close())
  return {
    port: (listener.address() as AddressInfo).port,
    get visits() {
      return visits
    },
  }
}
