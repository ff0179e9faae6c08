/** An exchange's way out over `node:http`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Sink } from '../core/pump.ts'
import { endLast } from './closing.ts'

/** An unread body up to this size is cheaper to read past than a new connection. */
const DRAINABLE_BYTES = 64 * 1024

export class HttpSink implements Sink {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  #status = 200
  #headers: Record<string, string | number> = {}
  readonly #extra: Readonly<Record<string, string>>

  /** `extra` headers go out with every answer. */
  constructor(req: IncomingMessage, res: ServerResponse, extra: Readonly<Record<string, string>>) {
    this.#req = req
    this.#res = res
    this.#extra = extra
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
    if (this.#res.write(chunk) || this.#res.destroyed) return undefined
    return new Promise(resolve => {
      const go = () => {
        this.#res.off('drain', go)
        this.#res.off('close', go)
        resolve()
      }
      this.#res.on('drain', go)
      this.#res.on('close', go)
    })
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
