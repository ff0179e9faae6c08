/** The public listener: accepts, makes exchanges, and drains. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Cancellation } from '../core/cancel.ts'
import { asError, errors, GatewayError } from '../core/error.ts'
import { Exchange } from '../core/exchange.ts'
import { requestId } from '../core/id.ts'
import type { Log, Metrics } from '../core/ports.ts'
import { pump } from '../core/pump.ts'
import type { Snapshot } from '../core/snapshot.ts'
import { readJson } from './body.ts'
import { endLast, isClosing } from './closing.ts'
import { checkRequest, headerCountLimit } from './edge.ts'
import { HttpSink } from './sink.ts'

/** Clients that are slow to say what they want; defaults of reliability section C. */
const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 120_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 75_000,
}
const MAX_REQUESTS_PER_SOCKET = 1_000
const MAX_CONNECTIONS = 10_000

export interface ListenerOptions {
  /** `host:port`; port 0 takes any free one. */
  readonly listen: string
  /** The snapshot that the next request runs on. */
  current(): Snapshot
  readonly metrics: Metrics
  readonly log: Log
}

export class Listener {
  readonly #server: Server
  readonly #options: ListenerOptions
  readonly #running = new InFlight()
  #address = ''
  #draining = false
  #idle: (() => void) | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#server = createServer(limits)
    this.#server.maxHeadersCount = headerCountLimit
    this.#server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET
    this.#server.maxConnections = MAX_CONNECTIONS
    const serve = (req: IncomingMessage, res: ServerResponse) => void this.#serve(req, res)
    this.#server.on('request', serve)
    this.#server.on('checkContinue', serve)
    this.#server.on('checkExpectation', (req, res) => this.#refuse(req, res, expectation()))
    this.#server.on('clientError', answerBrokenRequest)
  }

  get inFlight(): number {
    return this.#running.list.length
  }

  /** `host:port` as it came to be; empty until `listen` has resolved. */
  get address(): string {
    return this.#address
  }

  get accepting(): boolean {
    return this.#address !== '' && !this.#draining
  }

  listen(): Promise<void> {
    const at = this.#options.listen.lastIndexOf(':')
    const host = this.#options.listen.slice(0, at).replace(/^\[|\]$/g, '')
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port: Number(this.#options.listen.slice(at + 1)), backlog: 1024 }, () => {
        const { address, family, port } = this.#server.address() as AddressInfo
        // From here on nobody waits for this promise: an error of the server must not end in it unseen.
        this.#server.off('error', reject)
        this.#address = `${family === 'IPv6' ? `[${address}]` : address}:${port}`
        resolve()
      })
    })
  }

  /** Stops accepting, lets what runs end within `ms`, then ends it with an in-band error. */
  async drain(ms: number): Promise<void> {
    this.#draining = true
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    // Sockets that never sent a byte, or went idle after close(), keep a server open.
    const sweep = setInterval(() => this.#server.closeIdleConnections(), 100)
    this.#server.closeIdleConnections()
    if (this.#running.list.length > 0) {
      const finished = new Promise<void>(resolve => {
        this.#idle = resolve
      })
      const timer = setTimeout(() => this.#abortAll(), ms)
      await finished
      clearTimeout(timer)
    }
    clearInterval(sweep)
    this.#server.closeAllConnections()
    await closed
  }

  #abortAll(): void {
    for (const { signal, sink } of this.#running.list) {
      signal.abort(errors.shuttingDown())
      sink.release()
    }
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (isClosing(req.socket)) return
    const snapshot = this.#options.current()
    const url = req.url ?? ''
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    let route: ReturnType<Snapshot['match']>
    try {
      checkRequest(req)
      route = snapshot.match(req.method ?? '', path)
      if (!route) throw errors.notFound(`There is no endpoint ${path.slice(0, 200)}.`)
      if ('allow' in route) throw errors.methodNotAllowed(req.method ?? '', route.allow)
    } catch (thrown) {
      this.#refuse(req, res, asError(thrown))
      return
    }

    snapshot.retain()
    const signal = new Cancellation()
    const { endpoint, chain } = route
    const ex = new Exchange({
      snapshot,
      endpoint,
      headers: req.headers,
      query: mark < 0 ? '' : url.slice(mark + 1),
      signal,
      body: () => readJson(req, res, endpoint.bodyLimit),
    })
    res.on('close', () => {
      if (!res.writableFinished) signal.abort(errors.aborted())
    })
    const sink = new HttpSink(req, res, ex.id, this.#draining)
    const flight = this.#running.enter(signal, sink)
    try {
      await pump(route, ex, sink)
      await chain.finish(ex, (filter, err) => this.#options.log.error({ filter, err }, 'a filter failed to finish'))
    } finally {
      this.#running.leave(flight)
      snapshot.release()
      if (this.#draining && this.#running.list.length === 0) this.#idle?.()
    }
  }

  /** An answer outside every chain: the request never became an exchange. */
  #refuse(req: IncomingMessage, res: ServerResponse, error: GatewayError): void {
    this.#options.metrics.refusal('http', error.code ?? 'internal')
    if (error.status === 500) this.#options.log.error({ err: error.cause }, 'a request could not be read')
    const body = JSON.stringify(errorBody(error))
    const close = (error.status !== 404 && error.status !== 405) || !req.complete || this.#draining
    const given = req.headers['x-request-id']
    res.writeHead(error.status, {
      ...error.headers,
      'x-request-id': requestId(typeof given === 'string' ? given : undefined),
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(close && { connection: 'close' }),
    })
    if (close) endLast(req, res, body)
    else res.end(body)
  }
}

interface Flight {
  readonly signal: Cancellation
  readonly sink: HttpSink
  at: number
}

/**
 * Requests that are being served. No Map: the tables that a busy one leaves behind keep what was in them alive until
 * the next full collection.
 */
class InFlight {
  readonly list: Flight[] = []

  enter(signal: Cancellation, sink: HttpSink): Flight {
    const flight = { signal, sink, at: this.list.length }
    this.list.push(flight)
    return flight
  }

  /** The last one takes its place. */
  leave({ at }: Flight): void {
    const last = this.list.pop()!
    if (last.at === at) return
    this.list[at] = last
    last.at = at
  }
}

const errorBody = ({ message, type, param, code }: GatewayError) => ({ error: { message, type, param, code } })

const expectation = () =>
  new GatewayError({
    status: 417,
    type: 'invalid_request_error',
    code: 'expectation_failed',
    message: 'The Expect header must be "100-continue".',
  })

/** What the HTTP parser could not read: answered in the interface's shape, then closed. */
function answerBrokenRequest(cause: NodeJS.ErrnoException, socket: Socket): void {
  if (isClosing(socket)) return
  if (!socket.writable || cause.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, text, error] =
    cause.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'Request Header Fields Too Large', errors.badRequest('The request headers are larger than 16 KiB.')]
      : cause.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'Request Timeout', errors.requestTimeout()]
        : [400, 'Bad Request', errors.badRequest('The request is not valid HTTP/1.1.')]
  const body = JSON.stringify(errorBody(error as GatewayError))
  socket.end(
    `HTTP/1.1 ${status} ${text}\r\nx-request-id: ${requestId(undefined)}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}
