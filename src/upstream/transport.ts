/** Sockets to providers: one undici pool per origin, kept over reloads, and the answer as batches of chunks. */
import { buildConnector, type Dispatcher, Pool } from 'undici'
import type { Cancellation } from '../core/cancel.ts'
import type { Provider, Timeouts } from '../core/catalog.ts'
import { errors, type GatewayError } from '../core/error.ts'
import { guardedConnector, nameServers, type Resolve } from './guard.ts'
import { sharedLookup } from './names.ts'

/** Below the shortest idle time of common providers, so that a stale socket is rarely picked (peers, row 21). */
const KEEP_ALIVE_MS = 25_000
const MAX_HEADER_BYTES = 16 * 1024
/** Unread bytes at which a provider is told to wait. */
const HIGH_WATER = 32 * 1024
/** After that a pool may be given up; its sockets have been idle for long then. */
const UNUSED_MS = 60_000
/** How long a provider may still talk after its last event. */
const DRAIN_MS = 1000

export interface Call {
  /** Whose calls are counted together, and how many of them may be open at the same time. */
  readonly provider: Pick<Provider, 'id' | 'owner' | 'concurrency'>
  readonly baseUrl: string
  /** Added to the path of `baseUrl`. */
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
  readonly timeouts: Timeouts
  /** Milliseconds that remain of the request's total time. */
  readonly remainingMs: number
  readonly signal: Cancellation
  /** On a socket of its own, since one that had been open before was not there any more. */
  readonly fresh?: boolean
}

interface PoolEntry {
  readonly pool: Pool
  /** Stands before every path. */
  readonly prefix: string
  usedAt: number
}

export class Transport {
  readonly #pools = new Map<string, PoolEntry>()
  /** By provider. */
  readonly #open = new Map<string, OpenCalls>()
  readonly #lookup = sharedLookup()
  readonly #resolve: Resolve
  readonly #allowPrivate: boolean

  /**
   * An organization's own providers are connected to at public addresses only, whatever their names lead to, unless
   * private ones are allowed.
   */
  constructor({ allowPrivate = false, resolve = nameServers() }: { allowPrivate?: boolean; resolve?: Resolve } = {}) {
    this.#allowPrivate = allowPrivate
    this.#resolve = resolve
  }

  /**
   * Sends one request; resolves with the answer's head. Rejects with a GatewayError that may fail over: with
   * `providerBusy` when as many calls are open already as may be, so that one provider that stalls does not take the
   * sockets and the memory of all.
   */
  send(call: Call): Promise<Incoming> {
    const { id, owner, concurrency } = call.provider
    const key = owner === undefined ? id : `${owner} ${id}`
    let open = this.#open.get(key)
    if (!open) {
      open = { count: 0 }
      this.#open.set(key, open)
    }
    if (open.count >= concurrency) return Promise.reject(errors.providerBusy(id))
    const guarded = owner !== undefined && !this.#allowPrivate
    const { pool, prefix } = this.#pool(call.baseUrl, call.timeouts.connect, guarded, call.fresh === true)
    const incoming = new Incoming(call, open)
    pool.dispatch({ method: 'POST', path: prefix + call.path, headers: call.headers, body: call.body }, incoming)
    return incoming.head
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(({ pool }) => pool.destroy()))
    this.#pools.clear()
  }

  #pool(baseUrl: string, connectMs: number, guarded: boolean, fresh: boolean): PoolEntry {
    const key = `${connectMs} ${guarded} ${fresh} ${baseUrl}`
    let entry = this.#pools.get(key)
    if (!entry) {
      this.#prune()
      const { origin, pathname } = new URL(baseUrl)
      const connect = guarded
        ? guardedConnector(connectMs, this.#resolve)
        : buildConnector({ timeout: connectMs, lookup: this.#lookup })
      const pool = new Pool(origin, {
        // How many there may be is bounded for each provider.
        connections: null,
        // With 0 no socket is kept.
        pipelining: fresh ? 0 : 1,
        connect: dated(connect),
        keepAliveTimeout: KEEP_ALIVE_MS,
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
        // Deadlines are our own: undici's restart on every 1xx and count idle time only.
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: MAX_HEADER_BYTES,
      })
      entry = { pool, prefix: pathname.replace(/\/$/, ''), usedAt: 0 }
      this.#pools.set(key, entry)
    }
    entry.usedAt = performance.now()
    return entry
  }

  /** Gives up the pools of addresses that nobody uses any more: of providers that are gone, or have moved. */
  #prune(): void {
    const now = performance.now()
    for (const [key, { pool, usedAt }] of this.#pools) {
      const { running, pending } = pool.stats
      if (now - usedAt < UNUSED_MS || running + pending > 0) continue
      this.#pools.delete(key)
      // Nothing is open in it that anybody waits for.
      pool.destroy().catch(() => undefined)
    }
  }
}

interface OpenCalls {
  count: number
}

/**
 * One answer as it comes in. A clock bounds each phase (first event, then idle time between chunks) and with it the
 * total time, which all attempts share. Aborting the signal destroys the socket at once.
 */
export class Incoming implements Dispatcher.DispatchHandler {
  status = 0
  headers: Readonly<Record<string, string | string[] | undefined>> = {}
  readonly head: Promise<Incoming>

  /** Not the call itself: its body need not be kept until the answer has ended. */
  readonly #idleMs: number
  readonly #signal: Cancellation
  readonly #open: OpenCalls
  #settled = false
  /** On the monotonic clock, as is when the time of all attempts together is over. */
  readonly #began: number
  readonly #deadline: number
  #phase: NodeJS.Timeout
  #phaseName: 'first event' | 'idle' = 'first event'
  #resolveHead!: (incoming: Incoming) => void
  #rejectHead!: (error: GatewayError) => void
  #waiting: { resolve(chunks: Buffer[] | undefined): void; reject(error: GatewayError): void } | undefined
  #controller: Dispatcher.DispatchController | undefined
  #chunks: Buffer[] = []
  #queued = 0
  #paused = false
  #ended = false
  #released = false
  /** Something has come back, early hints at least. */
  #heard = false
  #error: GatewayError | undefined
  readonly #onAbort = () => this.#fail(this.#signal.reason ?? errors.aborted())

  /** Counts as one of `open` until nothing is expected of it any more. */
  constructor(call: Call, open: OpenCalls) {
    this.#idleMs = call.timeouts.idle
    this.#signal = call.signal
    this.#open = open
    open.count++
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    this.#began = performance.now()
    this.#deadline = this.#began + call.remainingMs
    this.#phase = setTimeout(() => this.#expire(), Math.max(1, Math.min(call.timeouts.firstEvent, call.remainingMs)))
    call.signal.listen(this.#onAbort)
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  /** All chunks that have arrived since the last call, waiting for at least one; undefined at the end. */
  take(): Promise<Buffer[] | undefined> {
    if (this.#chunks.length > 0) return Promise.resolve(this.#taken())
    if (this.#error) return Promise.reject(this.#error)
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  #taken(): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.#queued = 0
    if (this.#paused) {
      this.#paused = false
      this.#controller?.resume()
    }
    return chunks
  }

  /** The first event is here: from now on only silence between chunks is timed. */
  committed(): void {
    clearTimeout(this.#phase)
    if (this.#ended || this.#error) return
    this.#phaseName = 'idle'
    const remainingMs = this.#deadline - performance.now()
    this.#phase = setTimeout(() => this.#expire(), Math.max(1, Math.min(this.#idleMs, remainingMs)))
  }

  /** Cuts off an unfinished answer. */
  destroy(): void {
    if (!this.#ended) this.#fail(errors.aborted())
  }

  /**
   * The answer is complete as far as its wire goes: what still comes is read and dropped for a moment, so that the
   * socket can serve again; a provider that goes on talking is cut off.
   */
  release(): void {
    if (this.#ended || this.#error) return
    this.#settle()
    this.#released = true
    this.#phase = setTimeout(() => this.#fail(errors.aborted()), DRAIN_MS)
    this.#phase.unref()
    if (this.#paused) this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#error) controller.abort(this.#error)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.#heard = true
    if (status < 200) return
    this.status = status
    this.headers = headers
    this.#resolveHead(this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#released) return
    this.#chunks.push(chunk)
    this.#queued += chunk.length
    if (this.#phaseName === 'idle') this.#phase.refresh()
    // Silence is for the phase clock; a provider that goes on talking is cut off here.
    if (performance.now() > this.#deadline) this.#fail(errors.upstreamTimeout('total time'))
    if (this.#queued > HIGH_WATER && !this.#paused) {
      this.#paused = true
      controller.pause()
    }
    this.#notify()
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#settle()
    this.#notify()
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    const stale = !this.#heard && (connectedAt.get(cause) ?? Number.POSITIVE_INFINITY) < this.#began
    this.#fail(errors.unreachable(reason(cause), cause).with({ stale }))
  }

  #expire(): void {
    // A reader that does not read is not the provider's silence.
    if (performance.now() >= this.#deadline) this.#fail(errors.upstreamTimeout('total time'))
    else if (this.#paused) this.#phase.refresh()
    else this.#fail(errors.upstreamTimeout(this.#phaseName))
  }

  #fail(error: GatewayError): void {
    if (this.#error || this.#ended) return
    this.#error = error
    this.#settle()
    this.#controller?.abort(error)
    this.#rejectHead(error)
    this.#notify()
  }

  #settle(): void {
    clearTimeout(this.#phase)
    if (!this.#settled) {
      this.#settled = true
      this.#open.count--
    }
    this.#signal.ignore(this.#onAbort)
  }

  #notify(): void {
    const waiting = this.#waiting
    if (!waiting) return
    this.#waiting = undefined
    if (this.#chunks.length > 0) waiting.resolve(this.#taken())
    else if (this.#error) waiting.reject(this.#error)
    else waiting.resolve(undefined)
  }
}

/** When the sockets were connected that ended in these errors; on the monotonic clock. */
const connectedAt = new WeakMap<Error, number>()

/** Connects, and tells of each socket that breaks how old it was. */
function dated(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      const now = performance.now()
      socket?.once('error', error => connectedAt.set(error, now))
      callback(...result)
    })
}

/** Why a connection failed, without addresses: a code where there is one. */
function reason(cause: Error): string {
  const code = (cause as { code?: unknown }).code
  if (typeof code !== 'string') return 'connection failed'
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connection timed out'
  return code.startsWith('UND_ERR') ? 'the connection broke' : code
}
