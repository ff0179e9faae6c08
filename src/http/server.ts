/** The public listener: accepts connections, creates exchanges, drains. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Cancellation } from '../core/cancel.ts'
import { asError, errors, GatewayError } from '../core/error.ts'
import { Exchange } from '../core/exchange.ts'
import type { MemoryBudget } from '../core/memory-budget.ts'
import type { Load, Log, Metrics } from '../core/ports.ts'
import { pump } from '../core/pump.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import { Hysteresis } from '../lib/hysteresis.ts'
import { readBody } from './body.ts'
import { BodyGuard } from './body-guard.ts'
import { afterAll, answerClientError } from './client-error.ts'
import { isClosing } from './closing.ts'
import { Cors } from './cors.ts'
import { type DrainTimes, drain } from './drain.ts'
import { checkRequest } from './edge.ts'
import { InFlightRequests, type StreamTimeouts } from './in-flight-requests.ts'
import { pathOf, permit, refuse } from './refusal.ts'
import { HttpSink } from './sink.ts'
import { ignoreUpgrade, type UpgradeRequest, UpgradeSink } from './upgrade.ts'
import { asksForMessages, isHandshake } from './web-socket.ts'

const MAX_HEADER_BYTES = 16 * 1024
const CHECK_MS = 1_000
const KEEP_ALIVE_MS = 75_000
const MAX_REQUESTS_PER_SOCKET = 1_000
/** Unsent bytes of an answer at which its provider waits. Node 22 and later default to four times that. */
const HIGH_WATER = 16 * 1024
/** Node's own request timeout fires after the gateway's, which answers in the endpoint's form. */
const SPARE_MS = 5_000
/** For a path without an endpoint, so that web pages can read the 404. */
const USUAL_METHODS = ['GET', 'HEAD', 'POST']
/** Shares of the heap limit above which connections are closed after an answer, and above which none is accepted. */
const FULL = { keepAlive: 0.92, accept: 0.98, slack: 0.05 }

export interface ListenerOptions {
  /** `host:port`; port 0 takes any free one. */
  readonly listen: string
  readonly timeouts: StreamTimeouts
  /** Time limit for the head of a request, in milliseconds. */
  readonly headerTimeout: number
  /** Time without progress after which a client that does not read its answer is cut off, in milliseconds. */
  readonly writeStall: number
  readonly maxConnections: number
  /** Web origins that may read answers; `*` for all. */
  readonly origins: readonly string[]
  /** The snapshot for the next request. */
  current(): Snapshot
  readonly memory: MemoryBudget
  readonly load: Load
  readonly metrics: Metrics
  readonly log: Log
}

export class Listener {
  readonly #server: Server
  readonly #options: ListenerOptions
  readonly #requests: InFlightRequests
  readonly #cors: Cors
  /** Open sockets, with the number of requests carried by each. */
  readonly #sockets = new Map<Socket, number>()
  /** Sockets on which an answer waited behind another one. */
  readonly #pipelined = new WeakSet<Socket>()
  readonly #closesConnections = new Hysteresis(FULL.keepAlive, FULL.keepAlive - FULL.slack)
  readonly #refusesConnections = new Hysteresis(FULL.accept, FULL.accept - FULL.slack)
  /** Whether every answer closes its connection. */
  #lastAnswers = false
  /** Instead of the server's own limit, beyond which a primary would offer a connection to its workers repeatedly. */
  #maxConnections: number
  #address = ''
  #draining = false
  #abortDrain!: () => void
  readonly #aborted = new Promise<void>(resolve => {
    this.#abortDrain = resolve
  })
  #idle: (() => void) | undefined

  constructor(options: ListenerOptions) {
    const { headerTimeout, timeouts, maxConnections } = options
    this.#options = options
    this.#requests = new InFlightRequests(timeouts, () => this.#watchMemory())
    this.#cors = new Cors(options.origins)
    this.#server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headerTimeout,
      requestTimeout: Math.max(headerTimeout, timeouts.request + SPARE_MS),
      connectionsCheckingInterval: Math.min(CHECK_MS, headerTimeout / 4),
      keepAliveTimeout: KEEP_ALIVE_MS,
      highWaterMark: HIGH_WATER,
      // `checkRequest` requires it, so that the error has the gateway's form.
      requireHostHeader: false,
    })
    // `checkRequest` counts them. Beyond this limit Node 20 drops headers silently, and later versions reject the
    // request as unreadable. Their total size is limited in any case.
    this.#server.maxHeadersCount = 0
    const serve = (req: IncomingMessage, res: ServerResponse) => void this.#serve(req, res)
    this.#server.on('request', serve)
    this.#server.on('checkContinue', serve)
    this.#server.on('checkExpectation', (req, res) => this.#refuse(req, res, expectation(), true))
    this.#server.on('upgrade', (req, socket: Socket, head) => this.#upgrade({ req, socket, head }))
    this.#server.on('clientError', (cause, socket: Socket) =>
      answerClientError(cause, socket, this.#requests.on(socket), this.#cors.unread),
    )
    this.#maxConnections = maxConnections
    this.#server.on('connection', (socket: Socket) => {
      // Emitted again when an upgrade is ignored.
      if (this.#sockets.has(socket)) return
      if (this.#sockets.size >= this.#maxConnections) {
        socket.destroy()
        return
      }
      this.#sockets.set(socket, 0)
      socket.once('close', () => this.#closed(socket))
    })
  }

  get inFlight(): number {
    return this.#requests.list.length
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

  /** Reports not ready, stops accepting, waits for running requests, and then ends them with an in-band error. */
  async drain(times: DrainTimes): Promise<void> {
    this.#draining = true
    for (const { ex, signal, sink } of this.#requests.list) {
      sink.endConnection()
      if (ex.endsOnDrain) signal.abort(errors.shuttingDown())
    }
    await drain(
      {
        server: this.#server,
        idleSockets: () => this.#idleSockets(),
        finished: () => this.#finished(),
        abortAll: () => this.#abortAll(),
        destroyAll: () => {
          for (const socket of this.#sockets.keys()) socket.destroy()
        },
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

  /** Connections without a request: idle, unused, or with an incomplete head. */
  *#idleSockets(): Iterable<Socket> {
    const busy = new Set(this.#requests.list.map(({ sink }) => sink.socket))
    for (const socket of this.#sockets.keys()) if (!busy.has(socket) && !isClosing(socket)) yield socket
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
    this.#sockets.delete(socket)
    if (!this.#pipelined.has(socket)) return
    for (const { signal, sink } of this.#requests.on(socket)) {
      signal.abort(errors.aborted())
      sink.release()
    }
  }

  /** Counts a request of a connection; returns how many more it may carry, negative beyond the limit. */
  #left(socket: Socket): number {
    const carried = (this.#sockets.get(socket) ?? 0) + 1
    if (this.#sockets.has(socket)) this.#sockets.set(socket, carried)
    return MAX_REQUESTS_PER_SOCKET - carried
  }

  #watchMemory(): void {
    const memory = this.#options.load.memory()
    this.#lastAnswers = this.#closesConnections.isOver(memory)
    this.#maxConnections = this.#refusesConnections.isOver(memory) ? 0 : this.#options.maxConnections
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const left = this.#left(req.socket)
    if (left < 0 || isClosing(req.socket)) return
    const last = left === 0 || this.#draining || this.#lastAnswers
    const { current, memory, writeStall, log } = this.#options
    const snapshot = current()
    const path = pathOf(req)
    let match: ReturnType<Snapshot['match']>
    try {
      checkRequest(req)
      match = snapshot.match(req.method ?? '', path)
      if (this.#cors.isPreflight(path, req)) {
        const methods = match && 'allow' in match ? match.allow : USUAL_METHODS
        return permit(req, res, this.#cors.preflight(req, methods), last)
      }
      if (!match) throw errors.notFound(`There is no endpoint ${path.slice(0, 200)}.`)
      if ('allow' in match) throw errors.methodNotAllowed(req.method ?? '', match.allow)
    } catch (thrown) {
      this.#refuse(req, res, asError(thrown), last)
      return
    }

    snapshot.retain()
    const signal = new Cancellation()
    const guard: BodyGuard = new BodyGuard(memory, (): string => ex.principal?.orgId ?? '')
    const { value: route, params } = match
    const { endpoint, chain } = route
    const ex = new Exchange({
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
    })
    res.on('close', () => {
      if (!res.writableFinished) signal.abort(errors.aborted())
    })
    if (!res.socket) this.#pipelined.add(req.socket)
    const idHeader = endpoint.codec.idHeader?.(req.headers)
    const cors = this.#cors.headers(path, req)
    const named = idHeader === undefined ? cors : [...cors, idHeader, ex.id]
    const fixed = endpoint.operation ? [...named, 'x-gateway-log-id', ex.logId] : named
    const sink = new HttpSink(req, res, ex.id, last, writeStall, fixed)
    const inFlight = this.#requests.enter(ex, signal, sink, guard)
    try {
      await pump(route, ex, sink)
      await chain.finish(ex, (filter, err) => log.error({ filter, err }, 'filter finish failed'))
    } finally {
      this.#requests.leave(inFlight)
      guard.release()
      snapshot.release()
      if (this.inFlight === 0) this.#idle?.()
    }
  }

  /** `node:http` emits this for every request with an Upgrade header. Most are served as if they had none. */
  #upgrade(request: UpgradeRequest): void {
    const { req, socket } = request
    // `close` handles the failure.
    socket.on('error', () => undefined)
    const path = pathOf(req)
    const snapshot = this.#options.current()
    const match = asksForMessages(req) && isHandshake(req) ? snapshot.match('GET', path) : undefined
    const earlier = this.#requests.on(socket)
    if (match && 'value' in match && match.value.endpoint.upgrade && earlier.length === 0 && isSound(req)) {
      void this.#serveUpgrade(request, path, snapshot, match.value)
    } else if (earlier.length === 0) ignoreUpgrade(this.#server, request)
    else afterAll(earlier, () => socket.writable && ignoreUpgrade(this.#server, request))
  }

  async #serveUpgrade(request: UpgradeRequest, path: string, snapshot: Snapshot, route: Route): Promise<void> {
    const { req, socket } = request
    const { memory, log } = this.#options
    snapshot.retain()
    const signal = new Cancellation()
    if (this.#draining) signal.abort(errors.shuttingDown())
    const guard: BodyGuard = new BodyGuard(memory, (): string => ex.principal?.orgId ?? '')
    const fixed = [...this.#cors.headers(path, req)]
    const sink = new UpgradeSink(request, fixed)
    const ex = new Exchange({
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
    socket.once('close', () => {
      if (!sink.begun) signal.abort(errors.aborted())
    })
    const inFlight = this.#requests.enter(ex, signal, sink, guard)
    try {
      await pump(route, ex, sink)
      await route.chain.finish(ex, (filter, err) => log.error({ filter, err }, 'filter finish failed'))
    } finally {
      this.#requests.leave(inFlight)
      snapshot.release()
      if (this.inFlight === 0) this.#idle?.()
    }
  }

  #refuse(req: IncomingMessage, res: ServerResponse, error: GatewayError, last: boolean): void {
    this.#options.metrics.refusal('http', error.code ?? 'internal')
    if (error.status === 500) this.#options.log.error({ err: error.cause }, 'request read failed')
    refuse(req, res, error, { snapshot: this.#options.current(), last, cors: this.#cors.headers(pathOf(req), req) })
  }
}

/** Unsound requests are refused like any other. */
function isSound(req: IncomingMessage): boolean {
  try {
    checkRequest(req)
    return true
  } catch {
    return false
  }
}

const expectation = () =>
  new GatewayError({
    status: 417,
    type: 'invalid_request_error',
    code: 'expectation_failed',
    message: 'The Expect header must be "100-continue".',
  })
