/** The response cache of one process: bounded in bytes, shared among tenants. */
import type { CachedReply, ReplyCache, TurnStore } from '../../core/ports.ts'
import { FairEntries } from './fair-entries.ts'

interface CacheOptions {
  /** Limit for all entries together, in bytes. */
  readonly maxBytes?: number
  /** Larger replies are not cached. */
  readonly maxEntryBytes?: number
  /** Milliseconds; monotonic. */
  readonly now?: () => number
}

const MIB = 1024 * 1024

/** Cached replies, and the reasoning of turns, for a time each. By default 64 MiB, and 1 MiB for one entry. */
export class MemoryCache implements ReplyCache, TurnStore {
  readonly #entries: FairEntries<CachedReply>

  constructor({ maxBytes = 64 * MIB, maxEntryBytes = MIB, now = () => performance.now() }: CacheOptions = {}) {
    this.#entries = new FairEntries({ limit: maxBytes, maxEntry: maxEntryBytes, now })
  }

  get(key: string): CachedReply | undefined {
    return this.#entries.get(key)
  }

  find(keys: readonly string[]): ReadonlyMap<string, CachedReply> {
    const found = new Map<string, CachedReply>()
    for (const key of keys) {
      const reply = this.get(key)
      if (reply) found.set(key, reply)
    }
    return found
  }

  set(key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string): void {
    this.#entries.set(tenant, key, reply, Math.max(1, Math.ceil(bytes)), ttlMs)
  }
}
