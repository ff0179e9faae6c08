/** Requests with an Upgrade header (RFC 9110 section 7.8): WebSockets at endpoints that take them, else plain HTTP. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Upgrade } from '../core/message-socket.ts'
import { errors } from '../lib/error.ts'
import { endSocket, rawAnswer } from './closing.ts'
import type { ServedSink } from './sink.ts'
import { acceptMessages } from './web-socket.ts'

/** An upgrade request as `node:http` hands it over: no parser reads the socket any more. */
export interface UpgradeRequest {
  readonly req: IncomingMessage
  readonly socket: Socket
  /** Bytes received after the request. */
  readonly head: Buffer
}

/** Serves the request as HTTP/1.1, as a server may: gives it to the parser again, without its Upgrade header. */
export function ignoreUpgrade(server: Server, { req, socket, head }: UpgradeRequest): void {
  const { rawHeaders: raw } = req
  let text = `${req.method} ${req.url} HTTP/${req.httpVersion}\r\n`
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!.toLowerCase()
    const value = name === 'connection' ? withoutUpgrade(raw[at + 1]!) : raw[at + 1]!
    if (name !== 'upgrade' && value !== undefined) text += `${raw[at]}: ${value}\r\n`
  }
  // The last piece that is given back is read first. Latin1 keeps each byte of the headers.
  if (head.length > 0) socket.unshift(head)
  socket.unshift(Buffer.from(`${text}\r\n`, 'latin1'))
  socket.setTimeout(0)
  server.emit('connection', socket)
}

/** Removes `upgrade` from a Connection header; undefined when nothing is left. */
function withoutUpgrade(value: string): string | undefined {
  const left = value.split(',').filter(token => token.trim().toLowerCase() !== 'upgrade')
  return left.length > 0 ? left.join(',') : undefined
}

/** The way out of a request that may become a WebSocket: until then, a refusal; from then on, nothing. */
export class UpgradeSink implements ServedSink {
  readonly #request: UpgradeRequest
  /** Names and values in turn, of every answer. */
  readonly #fixed: readonly string[]
  #status = 0
  #headers: readonly string[] = []
  #begun = false

  constructor(request: UpgradeRequest, fixed: readonly string[]) {
    this.#request = request
    this.#fixed = fixed
  }

  /** See `HttpRequest.upgrade`. */
  readonly upgrade: Upgrade = options => {
    const { req, socket, head } = this.#request
    try {
      const accepted = acceptMessages(req, socket, head, { ...options, headers: this.#fixed })
      this.#begun = true
      return accepted
    } catch (cause) {
      socket.destroy()
      throw errors.aborted().with({ cause })
    }
  }

  get begun(): boolean {
    return this.#begun
  }

  get socket(): Socket {
    return this.#request.socket
  }

  get received(): boolean {
    return true
  }

  head(status: number, contentType: string, headers: readonly string[]): void {
    this.#status = status
    this.#headers = ['content-type', contentType, ...headers, ...this.#fixed]
  }

  /** Nothing is streamed here. */
  write(): undefined {}

  end(body: string | Buffer | readonly Buffer[] = ''): undefined {
    if (this.#begun) return
    this.#begun = true
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : Buffer.concat(body)
    endSocket(this.#request.socket, rawAnswer(this.#status, this.#headers, bytes))
  }

  destroy(): void {
    this.#request.socket.destroy()
  }

  endConnection(): void {}

  release(): void {}

  begin(): void {}

  tick(): void {}

  check(): void {}
}
