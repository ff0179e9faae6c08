/** The public listener: accepts connections, creates exchanges, drains. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Cancellation } from '../core/cancel.ts'
import { Exchange } from '../core/exchange.ts'
import type { Load, Log, Metrics } from '../core/ports.ts'
import { pump } from '../core/pump.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import { guarded } from '../lib/guarded.ts'
import type { MemoryBudget } from '../limits/memory.ts'
import { meters } from '../metering/meter.ts'
import { dropBody, readBody } from './body.ts'
import { BodyGuard } from './body-guard.ts'
import { type Connection, MAX_UNANSWERED_REQUESTS } from './connection.ts'
import { Connections } from './connections.ts'
import { Cors } from './cors.ts'
import { type DrainTimes, drain } from './drain.ts'
import { checkRequest, expectation, isSound } from './edge.ts'
import { answerClientError, hasBody, pathOf, permit, refuse } from './error-answer.ts'
import { InFlightRequests, type RequestLimits } from './in-flight-requests.ts'
import { IncomingRequest } from './incoming-request.ts'
import { HttpSink, type ServedSink } from './sink.ts'
import { ignoreUpgrade, type UpgradeRequest, UpgradeSink } from './upgrade.ts'
import { asksForMessages, isHandshake } from './web-socket.ts'

const MAX_HEADER_BYTES = 16 * 1024
const CHECK_MS = 1_000
const KEEP_ALIVE_MS = 75_000
/** Unsent bytes of an answer at which its provider waits. Node 22 and later default to four times that. */
const HIGH_WATER = 16 * 1024
/** Node's own request timeout fires after the gateway's, which answers in the endpoint's form. */
const SPARE_MS = 5_000
/** For a path without an endpoint, so that web pages can read the 404. */
const USUAL_METHODS = ['GET', 'HEAD', 'POST']

/** Settings of the public listener. */
interface ListenerOptions {
  /** `host:port`; port 0 takes any free one. */
  readonly listen: string
  readonly limits: RequestLimits
  /** Time limit for the head of a request, in milliseconds. */
  readonly headerTimeout: number
  /** Time without progress after which a client that does not read its answer is cut off, in milliseconds. */
  readonly writeStall: number
  readonly maxConnections: number
  /** Web origins that may read answers; `*` for all. */
  readonly origins: readonly string[]
  /** The snapshot for the next request. */
  current(): Snapshot
  /** Asks again whether the caller of a stream may go on. */
  recheck?(ex: Exchange): void
  readonly memory: MemoryBudget
  readonly load: Load
  readonly metrics: Metrics
  readonly log: Log
}

/** The public HTTP server. `drain` ends it, and resolves when every connection is closed. */
export class Listener {
  readonly #server: Server<typeof IncomingRequest>
  readonly #options: ListenerOptions
  readonly #requests: InFlightRequests
  readonly #cors: Cors
  readonly #connections: Connections
  /** Sockets on which an answer waited behind another one. */
  readonly #pipelined = new WeakSet<Socket>()
  #address = ''
  #draining = false
  /** Whether each answer is the last of its connection, since a drain has begun to end them. */
  #areLast = false
  #abortDrain!: () => void
  readonly #aborted = new Promise<void>(resolve => {
    this.#abortDrain = resolve
  })
  #idle: (() => void) | undefined
  readonly #finishFailed = (filter: string, err: unknown) =>
    this.#options.log.error({ filter, err }, 'filter finish failed')

  constructor(options: ListenerOptions) {
    const { headerTimeout, limits, maxConnections } = options
    this.#options = options
    this.#requests = new InFlightRequests(limits, () => this.#connections.adapt(options.load.memory()), options.recheck)
    this.#connections = new Connections(
      maxConnections,
      socket => this.#closed(socket),
      (thrown, socket) => this.#failed(thrown, socket),
    )
    this.#cors = new Cors(options.origins)
    this.#server = createServer({
      IncomingMessage: IncomingRequest,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headerTimeout,
      requestTimeout: Math.max(headerTimeout, limits.request + SPARE_MS),
      connectionsCheckingInterval: Math.min(CHECK_MS, headerTimeout / 4),
      keepAliveTimeout: KEEP_ALIVE_MS,
      highWaterMark: HIGH_WATER,
      // `checkRequest` requires it, so that the error has the gateway's form.
      requireHostHeader: false,
    })
    // `checkRequest` counts them. Beyond this limit Node 20 drops headers silently, and later versions reject the
    // request as unreadable. Their total size is limited in any case.
    this.#server.maxHeadersCount = 0
    const serve = (req: IncomingRequest, res: ServerResponse) => this.#serve(req, res)
    this.#server.on('request', serve)
    this.#server.on('checkContinue', serve)
    const failedRequest = (thrown: unknown, { socket }: IncomingMessage) => this.#failed(thrown, socket)
    const expects = (req: IncomingRequest, res: ServerResponse) => {
      const connection = this.#connections.of(req.socket)
      if (!connection.isOver()) this.#refuseLast(connection, req, res, expectation())
    }
    this.#server.on('checkExpectation', guarded(expects, failedRequest))
    const upgrade = (req: IncomingRequest, socket: Socket, head: Buffer) => this.#upgrade({ req, socket, head })
    this.#server.on('upgrade', guarded(upgrade, failedRequest))
    const broken = (cause: Error, socket: Socket) =>
      answerClientError(
        cause,
        { socket, connection: this.#connections.of(socket), requests: this.#requests.on(socket) },
        this.#cors.unread,
      )
    this.#server.on(
      'clientError',
      guarded(broken, (thrown, _, socket) => this.#failed(thrown, socket)),
    )
    const accept = (socket: Socket) => this.#connections.accept(socket)
    this.#server.on(
      'connection',
      guarded(accept, (thrown, socket) => this.#failed(thrown, socket)),
    )
  }

  get inFlight(): number {
    return this.#requests.list.length
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size
  }

  /** `host:port` in use; empty until `listen` has resolved. */
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
        // Nothing awaits this promise from here on, so a later error must not reject it unseen.
        this.#server.off('error', reject)
        this.#address = `${family === 'IPv6' ? `[${address}]` : address}:${port}`
        resolve()
      })
    })
  }

  /** Reports not ready, stops accepting after the delay, waits for running requests, and ends them with an in-band error. */
  async drain(times: DrainTimes): Promise<void> {
    this.#draining = true
    for (const { ex, signal } of this.#requests.list) {
      if (ex.answer.endsOnDrain) signal.abort(errors.shuttingDown())
    }
    await drain(
      {
        server: this.#server,
        idleSockets: () => this.#connections.idle(this.#requests.list),
        endConnections: () => {
          this.#areLast = true
          for (const { sink } of this.#requests.list) sink.endConnection()
        },
        finished: () => this.#finished(),
        abortAll: () => this.#abortAll(),
        destroyAll: () => this.#connections.destroyAll(),
      },
      times,
      this.#aborted,
    )
    this.#requests.close()
    if (this.inFlight > 0)
      this.#options.log.error({ requests: this.inFlight }, 'requests cut off at the end of the drain')
  }

  /** Ends a running or later drain without waiting for clients. */
  abortDrain(): void {
    this.#abortDrain()
  }

  /** Resolves when no request is served. */
  #finished(): Promise<void> {
    if (this.inFlight === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle = resolve
    })
  }

  #abortAll(): void {
    for (const { signal, sink, guard } of this.#requests.list) {
      // A request whose client has left may still read its provider.
      if (signal.aborted) signal.cut()
      else signal.abort(errors.shuttingDown())
      // The drain does not wait for incomplete bodies.
      guard.abort(errors.shuttingDown())
      sink.release()
    }
  }

  /** An answer waiting behind another one has no socket yet, and gets no event when the connection ends. */
  #closed(socket: Socket): void {
    if (!this.#pipelined.has(socket)) return
    for (const { signal, sink } of this.#requests.on(socket)) {
      signal.abort(errors.aborted())
      sink.release()
    }
  }

  #serve(req: IncomingRequest, res: ServerResponse): void {
    try {
      const connection = this.#connections.of(req.socket)
      if (connection.isOver()) return
      const isLast = connection.carry()
      if (connection.unanswered + 1 < MAX_UNANSWERED_REQUESTS) connection.take(res, () => this.#begin(req, res, isLast))
      else this.#refuseLast(connection, req, res, errors.tooManyPipelined(MAX_UNANSWERED_REQUESTS))
    } catch (thrown) {
      this.#failed(thrown, req.socket)
    }
  }

  /** The client of a request has left. */
  #left(signal: Cancellation, socket: Socket): void {
    try {
      signal.abort(errors.aborted())
    } catch (thrown) {
      this.#failed(thrown, socket)
    }
  }

  /** Ends a connection whose listener has thrown: an error of ours, of which no other connection learns. */
  #failed(err: unknown, socket: Socket): void {
    this.#options.log.error({ err }, 'connection failed')
    socket.destroy()
  }

  /** Nothing behind this request is served, and all before it. */
  #refuseLast(connection: Connection, req: IncomingRequest, res: ServerResponse, error: GatewayError): void {
    connection.end()
    connection.take(res, () => this.#refuse(req, res, error, true))
  }

  /** `isLast`: the connection may carry no more requests. */
  #begin(req: IncomingRequest, res: ServerResponse, isLast: boolean): void {
    const last = isLast || this.#areLast || this.#connections.areLast
    const { current, memory, writeStall, limits } = this.#options
    const snapshot = current()
    const path = pathOf(req)
    let match: ReturnType<Snapshot['match']>
    try {
      checkRequest(req)
      match = snapshot.match(req.method ?? '', path)
      if (this.#cors.isPreflight(path, req)) {
        const methods = match && 'allow' in match ? match.allow : USUAL_METHODS
        permit(req, res, this.#cors.preflight(req, methods), last)
        return
      }
      if (!match) throw errors.notFound(`There is no endpoint ${path.slice(0, 200)}.`)
      if ('allow' in match) throw errors.methodNotAllowed(req.method ?? '', match.allow)
    } catch (thrown) {
      this.#refuse(req, res, asError(thrown), last)
      return
    }

    snapshot.retain()
    const signal = new Cancellation()
    const guard: BodyGuard = new BodyGuard(memory, (): string => ex.caller.tenant)
    const { value: route, params } = match
    const { endpoint } = route
    const ex = new Exchange({
      meters,
      snapshot,
      endpoint,
      method: req.method ?? '',
      headers: req.headers,
      query: (req.url ?? '').slice(path.length + 1),
      params,
      signal,
      peer: req.socket.remoteAddress ?? '',
      port: req.socket.localPort ?? 0,
      body: () => readBody(req, res, endpoint, guard),
      memory: guard,
    })
    res.on('close', () => {
      if (!res.writableFinished) this.#left(signal, req.socket)
    })
    if (!res.socket) this.#pipelined.add(req.socket)
    const idHeader = endpoint.codec.idHeader?.(req.headers)
    const cors = this.#cors.headers(path, req)
    const named = idHeader === undefined ? cors : [...cors, idHeader, ex.id]
    const fixed = endpoint.operation ? [...named, 'x-gateway-log-id', ex.logId] : named
    // Listings are kept for all, whether they are read or not.
    const unread = endpoint.operation && guard
    const sink = new HttpSink(req, res, {
      requestId: ex.id,
      last,
      stallMs: writeStall,
      minRate: limits.minRate,
      fixed,
      guard: unread,
    })
    if (endpoint.bodyLimit === 0 && hasBody(req)) {
      dropBody(req, error => {
        // An answer that has left has no socket any more: what comes behind it would never be read.
        if (res.writableFinished) req.socket.destroy()
        else if (sink.begun) sink.destroy()
        sink.endConnection()
        signal.abort(error)
      })
    }
    void this.#run(route, ex, signal, sink, guard)
  }

  /** `node:http` emits this for every request with an Upgrade header. Most are served as if they had none. */
  #upgrade(request: UpgradeRequest): void {
    const { req, socket } = request
    // Once for a connection that asks again and again.
    if (!socket.listeners('error').includes(closesAnyway)) socket.on('error', closesAnyway)
    const path = pathOf(req)
    const snapshot = this.#options.current()
    const match = asksForMessages(req) && isHandshake(req) ? snapshot.match('GET', path) : undefined
    const connection = this.#connections.of(socket)
    const isFirst = connection.unanswered === 0
    if (match && 'value' in match && match.value.endpoint.upgrade && isFirst && isSound(req)) {
      this.#serveUpgrade(request, path, snapshot, match.value)
    } else connection.afterAnswers(() => socket.writable && ignoreUpgrade(this.#server, request))
  }

  #serveUpgrade(request: UpgradeRequest, path: string, snapshot: Snapshot, route: Route): void {
    const { req, socket } = request
    snapshot.retain()
    const signal = new Cancellation()
    if (this.#draining) signal.abort(errors.shuttingDown())
    const guard: BodyGuard = new BodyGuard(this.#options.memory, (): string => ex.caller.tenant)
    const fixed = [...this.#cors.headers(path, req)]
    const sink = new UpgradeSink(request, fixed)
    const ex = new Exchange({
      meters,
      snapshot,
      endpoint: route.endpoint,
      method: req.method ?? '',
      headers: req.headers,
      query: (req.url ?? '').slice(path.length + 1),
      signal,
      peer: socket.remoteAddress ?? '',
      port: socket.localPort ?? 0,
      body: async () => ({ value: undefined }),
      upgrade: sink.upgrade,
    })
    fixed.push('x-request-id', ex.id, 'x-gateway-log-id', ex.logId)
    const left = () => {
      if (!sink.begun) this.#left(signal, socket)
    }
    // A client that has ended its side cannot use a WebSocket.
    socket.once('end', left)
    socket.once('close', left)
    void this.#run(route, ex, signal, sink, guard)
  }

  /** Serves one exchange to its end. Its snapshot was retained for it. */
  async #run(route: Route, ex: Exchange, signal: Cancellation, sink: ServedSink, guard: BodyGuard): Promise<void> {
    const inFlight = this.#requests.enter(ex, signal, sink, guard)
    try {
      await pump(route, ex, sink)
      await route.chain.finish(ex, this.#finishFailed)
    } finally {
      this.#requests.leave(inFlight)
      guard.release()
      ex.snapshot.release()
      if (this.inFlight === 0) this.#idle?.()
    }
  }

  #refuse(req: IncomingRequest, res: ServerResponse, error: GatewayError, last: boolean): void {
    this.#options.metrics.refusal('http', error.code ?? 'internal')
    if (error.status === 500) this.#options.log.error({ err: error.cause }, 'request read failed')
    refuse(req, res, error, { snapshot: this.#options.current(), last, cors: this.#cors.headers(pathOf(req), req) })
  }
}

/** A socket that fails is closed, which is handled. */
const closesAnyway = (): void => undefined
