/** The response cache of one process: bounded in bytes, least recently used leaves first. */
import { LRUCache } from 'lru-cache'
import type { CachedReply, ReplyCache } from '../../core/ports.ts'

export interface CacheOptions {
  /** Of all entries together, in bytes. */
  readonly maxBytes?: number
  /** A larger reply is not kept. */
  readonly maxEntryBytes?: number
  /** Milliseconds; monotonic. */
  readonly now?: () => number
}

const MIB = 1024 * 1024

export class MemoryCache implements ReplyCache {
  readonly #entries: LRUCache<string, CachedReply>

  constructor({ maxBytes = 64 * MIB, maxEntryBytes = MIB, now = () => performance.now() }: CacheOptions = {}) {
    this.#entries = new LRUCache({ maxSize: maxBytes, maxEntrySize: maxEntryBytes, ttlResolution: 0, perf: { now } })
  }

  get(key: string): CachedReply | undefined {
    return this.#entries.get(key)
  }

  set(key: string, reply: CachedReply, bytes: number, ttlMs: number): void {
    // Of lru-cache's options, a ttl of 0 would mean for ever.
    if (ttlMs > 0) this.#entries.set(key, reply, { size: Math.max(1, Math.ceil(bytes)), ttl: ttlMs })
    else this.#entries.delete(key)
  }
}
