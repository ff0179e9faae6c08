/** Calls to providers: so many at a time for each, over sockets that are kept. */

import { Pool } from 'undici'
import type { InProcessProviders } from '../core/ports.ts'
import type { Connector } from '../egress/connector.ts'
import { guardedConnector, nameServers, type Resolve, sharedLookup } from '../egress/guard.ts'
import { type Sending, SocketClient, type SocketClientOptions, socketConnector } from '../egress/socket.ts'
import type { Egress } from '../lib/egress.ts'
import { errors } from '../lib/error.ts'
import { type AbandonedAnswerOptions, AbandonedAnswers } from './abandoned-answers.ts'
import { PiecewiseBody } from './content.ts'
import { InFlightCounts } from './in-flight-count.ts'
import { callInProcess } from './in-process-call.ts'
import { ReadCoalescer } from './read-coalescer.ts'
import type { UpstreamRequest } from './upstream-request.ts'
import { UpstreamResponse } from './upstream-response.ts'

/** How sockets are opened and read; all are optional. */
interface TransportOptions {
  /**
   * An organization's own providers are connected to at public addresses only, whatever their names lead to, unless
   * private ones are allowed.
   */
  readonly allowPrivate?: boolean
  readonly gatherMs?: number
  /** Shared with whatever else calls the providers. */
  readonly inFlight?: InFlightCounts
  readonly resolve?: Resolve
  /** Providers that are called without a socket. */
  readonly inProcess?: InProcessProviders
  /** How answers are read on whose client has left. */
  readonly linger?: AbandonedAnswerOptions
}

/** Sends requests to all providers of a process; `close` destroys its sockets. */
export class Transport {
  readonly #pools: Pools
  readonly #inFlight: InFlightCounts
  readonly #allowPrivate: boolean
  readonly #coalescer: ReadCoalescer
  readonly #abandoned: AbandonedAnswers
  readonly #inProcess: InProcessProviders | undefined

  /** Reads chunks of a stream together when they arrive within `gatherMs` of each other. */
  constructor({ allowPrivate = false, gatherMs = 0, inFlight, resolve, inProcess, linger }: TransportOptions = {}) {
    this.#inFlight = inFlight ?? new InFlightCounts()
    this.#allowPrivate = allowPrivate
    this.#coalescer = new ReadCoalescer(gatherMs)
    this.#pools = new Pools(resolve)
    this.#abandoned = new AbandonedAnswers(linger)
    this.#inProcess = inProcess
  }

  /**
   * Sends one request; resolves with the answer's head. Rejects with a GatewayError that may fail over. Rejects with
   * `providerBusy` when all calls, or those of the tenant, are in use. So one slow provider cannot take the sockets and
   * memory of all.
   */
  send(call: UpstreamRequest): Promise<UpstreamResponse> {
    const { method, baseUrl, path, headers, timeouts, fresh = false } = call
    const { id, owner, egress } = call.provider
    const open = this.#inFlight.begin(call.tenant, call.provider)
    if (!open) return Promise.reject(errors.providerBusy(id))
    const body = Array.isArray(call.body) ? new PiecewiseBody(call.body) : (call.body as string | Buffer | undefined)
    const pieces = body instanceof PiecewiseBody ? body : undefined
    const response = new UpstreamResponse(call, pieces, open, this.#coalescer, this.#abandoned)
    if (response.hasFailed) return response.head
    const local = this.#inProcess?.get(originOf(baseUrl))
    if (local) {
      const { pathname } = new URL(baseUrl)
      callInProcess(local, { method, path: pathname + path, headers, body: call.body }, response)
      return response.head
    }
    const guarded = owner !== undefined && !this.#allowPrivate
    const { pool, prefix } = this.#pools.of({ baseUrl, connectMs: timeouts.connect, owner, guarded, fresh, egress })
    // undici takes any iterable; its types name streams only.
    const sending: Sending = {
      method,
      path: prefix + path,
      headers,
      body: (body ?? null) as string | null,
      caller: response,
    }
    pool.dispatch(sending, response)
    return response.head
  }

  close(): Promise<void> {
    return this.#pools.close()
  }
}

function originOf(baseUrl: string): string {
  const path = baseUrl.indexOf('/', baseUrl.indexOf('://') + 3)
  return path < 0 ? baseUrl : baseUrl.slice(0, path)
}

/** Below the shortest idle time of common providers, so that a stale socket is rarely picked. */
const KEEP_ALIVE_MS = 25_000
const MAX_HEADER_BYTES = 16 * 1024
/** After that a pool may be given up; its sockets have been idle for long then. */
const UNUSED_MS = 60_000

/** Facts that decide which sockets may serve a call. */
interface PoolKey {
  readonly baseUrl: string
  readonly connectMs: number
  /** Organization of an own provider: it pays for the TLS handshakes. */
  readonly owner: string | undefined
  /** To public addresses only; of those with an owner. */
  readonly guarded: boolean
  /** On a socket of its own. */
  readonly fresh: boolean
  readonly egress: Egress | undefined
}

interface Entry {
  readonly pool: Pool
  /** Stands before every path. */
  readonly prefix: string
  usedAt: number
}

/** The pools of a process, by `PoolKey`; `of` opens one where there is none, and ends those long unused. */
class Pools {
  readonly #entries = new Map<string, Entry>()
  readonly #lookup = sharedLookup()
  readonly #resolve: Resolve

  constructor(resolve: Resolve = nameServers()) {
    this.#resolve = resolve
  }

  of(way: PoolKey): Pick<Entry, 'pool' | 'prefix'> {
    const key = `${way.connectMs} ${way.guarded} ${way.fresh} ${way.owner ?? ''} ${way.egress?.id ?? ''} ${way.baseUrl}`
    let entry = this.#entries.get(key)
    if (!entry) {
      this.#prune()
      entry = this.#open(way)
      this.#entries.set(key, entry)
    }
    entry.usedAt = performance.now()
    return entry
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ pool }) => pool.destroy()))
    this.#entries.clear()
  }

  #open(way: PoolKey): Entry {
    const { origin, pathname } = new URL(way.baseUrl)
    const pool = new Pool(origin, {
      // How many there may be is bounded for each provider.
      connections: null,
      // With 0 no socket is kept.
      pipelining: way.fresh ? 0 : 1,
      connect: this.#connector(way),
      factory: (origin, options) => new SocketClient(origin, options as SocketClientOptions),
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // Deadlines are our own: undici's restart on every 1xx and count idle time only.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    return { pool, prefix: pathname.replace(/\/$/, ''), usedAt: 0 }
  }

  #connector({ connectMs, owner, guarded, egress }: PoolKey): Connector {
    if (owner !== undefined && guarded)
      return guardedConnector({ timeoutMs: connectMs, resolve: this.#resolve, egress })
    return socketConnector({ timeout: connectMs, lookup: this.#lookup, egress })
  }

  /** Closes the pools of addresses that no provider has any more. */
  #prune(): void {
    const now = performance.now()
    for (const [key, { pool, usedAt }] of this.#entries) {
      const { running, pending } = pool.stats
      if (now - usedAt < UNUSED_MS || running + pending > 0) continue
      this.#entries.delete(key)
      // No request is open in it.
      pool.destroy().catch(() => undefined)
    }
  }
}
