/** A socket to a provider, with its age, whose reading can be paused. */
import type { Socket, TcpNetConnectOpts } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import { boundedConnector, type Connector, type ConnectorOptions } from './connector.ts'
import { endsWhilePaused } from './paused-answers.ts'

const READ_BYTES = 64 * 1024

/** The socket that a client has at the moment, or connects. */
export class UpstreamSocket {
  readonly #connect: Connector
  #socket: Socket | undefined
  #connectedAt: number | undefined
  #connecting: Socket | undefined
  /** Why no socket is connected any more. */
  #cancelled: Error | undefined

  constructor(connect: Connector) {
    this.#connect = connect
  }

  get socket(): Socket | undefined {
    return this.#socket
  }

  /** On the monotonic clock; undefined while the socket connects. */
  get connectedAt(): number | undefined {
    return this.#connectedAt
  }

  /** To be given to the client. */
  readonly connect: Connector = (options, callback) => {
    this.#connectedAt = undefined
    if (this.#cancelled) {
      callback(this.#cancelled, null)
      return undefined
    }
    let hasEnded = false
    const connecting = this.#connect(options, (...result) => {
      const [, socket] = result
      hasEnded = true
      this.#connecting = undefined
      this.#socket = socket ?? undefined
      if (socket) this.#connectedAt = performance.now()
      callback(...result)
    })
    if (!hasEnded) this.#connecting = connecting
    return connecting
  }

  /** A request is about to wait for the socket. */
  begin(): void {
    this.#cancelled = undefined
  }

  /**
   * The request that waits for the socket has ended. Where that still connects, it is destroyed, and undici lets the request
   * go: else it would keep both, with the request's body, until the connect timeout.
   */
  cancelConnect(reason: Error): void {
    this.#cancelled = reason
    this.#connecting?.destroy(reason)
  }
}

/** A request to send and the handler of its answer. The caller gets the socket before a byte is written. */
export interface Sending extends Dispatcher.DispatchOptions {
  readonly caller: { line: UpstreamSocket | undefined }
}

/**
 * Reads into one buffer that all sockets share; each read is copied from it. Node would allocate 64 KiB for every read.
 * Only sockets that read this way stop on `pause`.
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
export function socketConnector(options: ConnectorOptions = {}): Connector {
  const all: ConnectorOptions & Pick<TcpNetConnectOpts, 'onread'> = { ...options, onread }
  return endsWhilePaused(boundedConnector(all))
}

/** Options of the clients that a pool makes. */
export interface SocketClientOptions extends Client.Options {
  connect: Connector
}

/** One of a pool's clients, which has one socket and one request at a time. */
export class SocketClient extends Client {
  readonly #line: UpstreamSocket

  constructor(origin: URL, { connect, ...options }: SocketClientOptions) {
    const line = new UpstreamSocket(connect)
    super(origin, { ...options, connect: line.connect })
    this.#line = line
  }

  override dispatch(sending: Sending, handler: Dispatcher.DispatchHandler): boolean {
    sending.caller.line = this.#line
    this.#line.begin()
    return super.dispatch(sending, handler)
  }
}
