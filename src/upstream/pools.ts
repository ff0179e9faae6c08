/** Sockets to providers: one undici pool per origin, kept over reloads. */
import { Pool } from 'undici'
import type { Connector } from '../egress/connector.ts'
import { guardedConnector, nameServers, type Resolve } from '../egress/guard.ts'
import { sharedLookup } from '../egress/names.ts'
import { SocketClient, type SocketClientOptions, socketConnector } from '../egress/socket.ts'
import type { Egress } from '../lib/egress.ts'

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
export class Pools {
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
