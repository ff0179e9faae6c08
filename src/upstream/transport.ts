/** Calls to providers: so many at a time for each, over sockets that are kept. */

import type { InProcessProviders } from '../core/ports.ts'
import type { Resolve } from '../egress/guard.ts'
import type { Sending } from '../egress/socket.ts'
import { errors } from '../lib/error.ts'
import { type AbandonedAnswerOptions, AbandonedAnswers } from './abandoned-answers.ts'
import { PiecewiseBody } from './content.ts'
import { InFlightCounts } from './in-flight-count.ts'
import { callInProcess } from './in-process-call.ts'
import { Pools } from './pools.ts'
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
