/** Calls to providers: so many at a time for each, over sockets that are kept. */
import { errors } from '../core/error.ts'
import { PiecewiseBody } from './content.ts'
import type { Resolve } from './guard.ts'
import { InFlightCount } from './in-flight-count.ts'
import { lingerSlots } from './linger.ts'
import { Pools } from './pools.ts'
import { ReadCoalescer } from './read-coalescer.ts'
import type { UpstreamRequest } from './upstream-request.ts'
import { UpstreamResponse } from './upstream-response.ts'
import type { Sending } from './upstream-socket.ts'

export interface TransportOptions {
  /**
   * An organization's own providers are connected to at public addresses only, whatever their names lead to, unless
   * private ones are allowed.
   */
  readonly allowPrivate?: boolean
  readonly gatherMs?: number
  readonly resolve?: Resolve
}

export class Transport {
  readonly #pools: Pools
  /** By provider. */
  readonly #open = new Map<string, InFlightCount>()
  /** By the owner of own providers. */
  readonly #ofOwners = new Map<string, InFlightCount>()
  readonly #allowPrivate: boolean
  readonly #coalescer: ReadCoalescer
  readonly #lingering = lingerSlots()

  /** Of a stream, what comes within `gatherMs` of what came before is read together. */
  constructor({ allowPrivate = false, gatherMs = 0, resolve }: TransportOptions = {}) {
    this.#allowPrivate = allowPrivate
    this.#coalescer = new ReadCoalescer(gatherMs)
    this.#pools = new Pools(resolve)
  }

  /**
   * Sends one request; resolves with the answer's head. Rejects with a GatewayError that may fail over: with
   * `providerBusy` when as many calls are open already as may be, or as the tenant may have beside others, so that one
   * provider that stalls does not take the sockets and the memory of all.
   */
  send(call: UpstreamRequest): Promise<UpstreamResponse> {
    const { method, baseUrl, path, headers, timeouts, fresh = false } = call
    const { id, owner } = call.provider
    const ofOwner = owner === undefined ? undefined : found(this.#ofOwners, owner)
    const open = found(this.#open, owner === undefined ? id : `${owner} ${id}`, ofOwner)
    const guarded = owner !== undefined && !this.#allowPrivate
    const { pool, prefix } = this.#pools.of({ baseUrl, connectMs: timeouts.connect, guarded, fresh })
    if (!open.begin(call.tenant, call.provider)) return Promise.reject(errors.providerBusy(id))
    const body = Array.isArray(call.body) ? new PiecewiseBody(call.body) : (call.body as string | Buffer | undefined)
    const pieces = body instanceof PiecewiseBody ? body : undefined
    const response = new UpstreamResponse(call, pieces, open, this.#coalescer, this.#lingering)
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

function found(all: Map<string, InFlightCount>, key: string, owner?: InFlightCount): InFlightCount {
  let open = all.get(key)
  if (!open) {
    open = new InFlightCount(owner)
    all.set(key, open)
  }
  return open
}
