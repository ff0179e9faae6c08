/** One end of a WebSocket (RFC 6455) that carries texts: without compression, and bounded in what it holds. */

/** Maximum fragments of a message; more would make a small message expensive. */
const MAX_FRAGMENTS = 1024
/** Reads that a message may come in. */
const MAX_CHUNKS = 16 * 1024
/**
 * One message, ping or pong in a turn of the loop: of frames of a few bytes 350,000 come in one, and a pause comes too
 * late for those that have been read.
 */
const SEVERAL_PER_TURN = false
/** For the other end to close, too. */
const CLOSE_MS = 5_000
/** RFC 6455 section 7.4.1: the connection ended without a word. */
const ABNORMAL = 1006

/** Returns the `ws` options of both ends; `limit` is the maximum bytes of a message. */
export const socketBounds = (limit: number) => ({
  maxPayload: limit,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_CHUNKS,
  allowSynchronousEvents: SEVERAL_PER_TURN,
  perMessageDeflate: false,
  closeTimeout: CLOSE_MS,
})

/** As the package `ws` has it. */
interface WebSocket {
  readonly readyState: number
  on(event: 'error' | 'ping' | 'pong', listener: () => void): unknown
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  once(event: 'close', listener: (code: number) => void): unknown
  send(text: string, options: { readonly binary: boolean }): void
  ping(): void
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  terminate(): void
}
const OPEN = 1
const CLOSED = 3

/** The underlying connection. */
interface Connection {
  readonly writableLength: number
  readonly bytesRead: number
  on(event: 'drain', listener: () => void): unknown
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
}

interface Listener {
  message(message: string | undefined, bytes: number): void
  pinged(): void
  pong(): void
  read(bytes: number): void
  drained(): void
  closed(code: number): void
}

const ignore = (): void => undefined
const TEXT = { binary: false }

/** A `MessageSocket` of the core. */
export class TextSocket {
  readonly #ws: WebSocket
  readonly #socket: Connection
  #listener: Listener | undefined
  /** The listener whose `closed` was called. */
  #closedListener: Listener | undefined

  /** Reads nothing yet. */
  constructor(ws: WebSocket, socket: Connection) {
    this.#ws = ws
    this.#socket = socket
    // Each error ends in `close`.
    ws.on('error', ignore)
    ws.pause()
  }

  open(listener: Listener): void {
    const ws = this.#ws
    const isFirst = this.#listener === undefined
    this.#listener = listener
    if (isFirst) this.#listen()
    if (ws.readyState === CLOSED) process.nextTick(() => this.#closed(ABNORMAL))
    else this.resume()
  }

  #listen(): void {
    const ws = this.#ws
    ws.on('message', (data: Buffer, isBinary) => {
      this.#listener!.message(isBinary ? undefined : data.toString('utf8'), data.length)
    })
    ws.on('ping', () => this.#listener!.pinged())
    ws.on('pong', () => this.#listener!.pong())
    // The library has taken it already.
    this.#socket.on('data', (chunk: Buffer) => this.#listener!.read(chunk.length))
    this.#socket.on('drain', () => this.#listener!.drained())
    ws.once('close', code => this.#closed(code))
  }

  #closed(code: number): void {
    if (this.#closedListener === this.#listener) return
    this.#closedListener = this.#listener
    this.#listener!.closed(code)
  }

  send(text: string): void {
    if (this.#ws.readyState === OPEN) this.#ws.send(text, TEXT)
  }

  ping(): void {
    if (this.#ws.readyState === OPEN) this.#ws.ping()
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  get waiting(): number {
    return this.#socket.writableLength
  }

  get received(): number {
    return this.#socket.bytesRead
  }

  close(code: number, reason: string): void {
    // Its answer must be read.
    this.resume()
    this.#ws.close(code, reason)
  }

  destroy(): void {
    this.#ws.terminate()
    // The library closes when it has gone through all that was read.
    process.nextTick(() => this.#listener && this.#closed(ABNORMAL))
  }
}
