/** An exchange's way out over `node:http`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Sink } from '../core/pump.ts'
import { endLast } from './closing.ts'

/** An unread body up to this size is cheaper to read past than a new connection. */
const DRAINABLE_BYTES = 64 * 1024
/** Characters from which a text is written as bytes: `node:http` keeps three for each until the client takes them. */
const LARGE = 4096
/** Of a client that does not read; default of reliability section C. */
const WRITE_STALL_MS = 60_000

export class HttpSink implements Sink {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  #status = 200
  #headers: Record<string, string | number> = {}
  readonly #extra: Readonly<Record<string, string>>
  readonly #stallMs: number
  #wake: (() => void) | undefined
  #released = false

  /** `extra` headers go out with every answer. A client that accepts no byte for `stallMs` is cut off. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    extra: Readonly<Record<string, string>>,
    stallMs: number = WRITE_STALL_MS,
  ) {
    this.#req = req
    this.#res = res
    this.#extra = extra
    this.#stallMs = stallMs
  }

  /** Kept until the first bytes, so that a whole answer gets its length and goes out in one write. */
  head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#status = status
    this.#headers = { ...headers, ...this.#extra }
    if (headers['content-type']?.startsWith('text/event-stream')) {
      this.#headers['cache-control'] = 'no-cache, no-transform'
      this.#headers['x-accel-buffering'] = 'no'
    }
    if (!this.#req.complete && !this.#drainable()) this.#headers.connection = 'close'
  }

  write(chunk: string | Buffer): Promise<void> | undefined {
    if (!this.#res.headersSent) this.#res.writeHead(this.#status, this.#headers)
    const bytes = typeof chunk === 'string' && chunk.length > LARGE ? Buffer.from(chunk) : chunk
    if (this.#res.write(bytes) || this.#res.destroyed || this.#released) return undefined
    return new Promise(resolve => {
      const { socket } = this.#res
      const go = () => {
        this.#wake = undefined
        socket?.setTimeout(0)
        this.#res.off('drain', go)
        this.#res.off('close', go)
        resolve()
      }
      this.#wake = go
      // Counts the time without any progress; `node:http` then destroys the socket.
      socket?.setTimeout(this.#stallMs)
      this.#res.on('drain', go)
      this.#res.on('close', go)
    })
  }

  /** From now on no `write` waits for the client. */
  release(): void {
    this.#released = true
    this.#wake?.()
  }

  end(chunk: string | Buffer = ''): void {
    if (!this.#res.headersSent) {
      this.#headers['content-length'] = Buffer.byteLength(chunk)
      this.#res.writeHead(this.#status, this.#headers)
    }
    if (this.#headers.connection === 'close') endLast(this.#req, this.#res, chunk)
    else this.#res.end(chunk)
  }

  destroy(): void {
    this.#res.destroy()
  }

  #drainable(): boolean {
    const { 'content-length': length, 'transfer-encoding': coding } = this.#req.headers
    return coding === undefined && Number(length ?? 0) <= DRAINABLE_BYTES
  }
}
