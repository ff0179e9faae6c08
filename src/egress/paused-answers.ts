/** Sockets whose provider may end or break them while an answer is paused. */
import type { Socket } from 'node:net'
import { guarded } from '../lib/guarded.ts'
import { boundedConnector, type Connector, type ConnectorOptions } from './connector.ts'

/** The part of undici's HTTP/1 parser that is used here: private, of 7.30.2. */
interface Parser {
  paused: boolean
  readonly ptr: unknown
  readonly llhttp: { llhttp_resume(parser: unknown): void }
  resume(): void
}

/**
 * undici 7 asserts that nothing is paused when a socket ends after an answer with `Connection: close`
 * (nodejs/undici#5360, mended in 8): without this, a slow reader and such a provider end the process. What the socket has
 * left is delivered before undici sees its end.
 */
export function endsWhilePaused(connect: Connector): Connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // Before undici adds its own listeners.
      if (socket) {
        const failed = (thrown: unknown) => void socket.destroy(thrown as Error)
        socket.on(
          'end',
          guarded(() => deliver(socket), failed),
        )
        const released = guarded(() => release(socket), failed)
        for (const name of ['error', 'close']) socket.on(name, released)
      }
      callback(...result)
    })
}

export const plainConnector = (options: ConnectorOptions): Connector => endsWhilePaused(boundedConnector(options))

function deliver(socket: Socket): void {
  const parser = parserOf(socket)
  if (!parser?.paused) return
  do parser.resume()
  while (parser.paused && socket.readableLength > 0 && !socket.destroyed)
  if (!parser.paused || socket.destroyed) return
  // The end of the socket is the end of this answer, which a paused parser does not see.
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

/** Nothing more comes: undici then fails an answer that is incomplete. */
function release(socket: Socket): void {
  const parser = parserOf(socket)
  if (parser?.paused) parser.paused = false
}

function parserOf(socket: Socket): Parser | undefined {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  const parser: unknown = symbol && Reflect.get(socket, symbol)
  return isParser(parser) ? parser : undefined
}

const isParser = (value: unknown): value is Parser =>
  typeof value === 'object' &&
  value !== null &&
  'paused' in value &&
  typeof value.paused === 'boolean' &&
  'llhttp' in value &&
  'ptr' in value &&
  'resume' in value &&
  typeof value.resume === 'function'
