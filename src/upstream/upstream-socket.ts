/** A socket to a provider, with its age, whose reading can be paused. */
import type { Socket, TcpNetConnectOpts } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'
import { boundedConnector } from './connector.ts'
import { endsWhilePaused } from './paused-answers.ts'

const READ_BYTES = 64 * 1024

/** The socket that a client has at the moment. */
export interface UpstreamSocket {
  readonly socket: Socket | undefined
  /** On the monotonic clock; undefined while the socket connects. */
  readonly connectedAt: number | undefined
}

/** What is sent over a socket, and what takes the answer: it gets the socket before a byte is written. */
export interface Sending extends Dispatcher.DispatchOptions {
  readonly caller: { line: UpstreamSocket | undefined }
}

/**
 * What was read is copied from one place that all sockets read to: Node would allocate 64 KiB for every read, and only
 * sockets that read this way stop reading on `pause`.
 */
const onread = {
  buffer: Buffer.allocUnsafeSlow(READ_BYTES),
  callback(this: Socket, length: number, bytes: Uint8Array): boolean {
    const copy = Buffer.allocUnsafeSlow(length)
    copy.set(bytes.subarray(0, length))
    return this.push(copy)
  },
}

/** undici's, for sockets that may rest. */
export function socketConnector(options: buildConnector.BuildOptions = {}): buildConnector.connector {
  const all: buildConnector.BuildOptions & Pick<TcpNetConnectOpts, 'onread'> = { ...options, onread }
  return endsWhilePaused(boundedConnector(all))
}

/** What a pool makes its clients with. */
export interface SocketClientOptions extends Client.Options {
  connect: buildConnector.connector
}

/** One of a pool's clients, which has one socket at a time. */
export class SocketClient extends Client {
  readonly #line: UpstreamSocket

  constructor(origin: URL, { connect, ...options }: SocketClientOptions) {
    const line: { -readonly [key in keyof UpstreamSocket]: UpstreamSocket[key] } = {
      socket: undefined,
      connectedAt: undefined,
    }
    super(origin, {
      ...options,
      connect: (target, callback) => {
        line.connectedAt = undefined
        connect(target, (...result) => {
          const [, socket] = result
          line.socket = socket ?? undefined
          if (socket) line.connectedAt = performance.now()
          callback(...result)
        })
      },
    })
    this.#line = line
  }

  override dispatch(sending: Sending, handler: Dispatcher.DispatchHandler): boolean {
    sending.caller.line = this.#line
    return super.dispatch(sending, handler)
  }
}
