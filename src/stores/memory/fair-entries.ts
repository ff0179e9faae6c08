/**
 * Entries of tenants within one bound. A tenant above its share loses its own oldest entries, never another tenant's.
 */
import { LRUCache } from 'lru-cache'
import { FairShare, type Shares } from '../../limits/share.ts'

/** A lone tenant may use everything: its entries are evicted when another tenant needs the room. */
const SHARES: Shares = { alone: 1, contended: 1 / 2 }

interface Entry<V> {
  readonly tenant: string
  readonly value: V
  readonly size: number
}

interface FairEntriesOptions<V> {
  /** Limit of the sum of all sizes. */
  readonly limit: number
  /** Larger entries are not stored. */
  readonly maxEntry?: number
  /** Milliseconds; monotonic. */
  readonly now?: () => number
  /** Called with every evicted value. */
  readonly left?: (value: V) => void
}

/** A map from keys to values with sizes and lifetimes, bounded by the sum of sizes. */
export class FairEntries<V> {
  readonly #maxEntry: number
  readonly #share: FairShare
  readonly #entries: LRUCache<string, Entry<V>>
  /** Keys by tenant, in insertion order. */
  readonly #keys = new Map<string, Set<string>>()
  readonly #onLeft: ((value: V) => void) | undefined

  constructor({ limit, maxEntry = limit, now = () => performance.now(), left }: FairEntriesOptions<V>) {
    this.#maxEntry = maxEntry
    this.#onLeft = left
    this.#share = new FairShare(limit, now, SHARES)
    this.#entries = new LRUCache({
      maxSize: limit,
      ttl: 1,
      ttlResolution: 0,
      perf: { now },
      dispose: (entry, key) => this.#left(key, entry),
    })
  }

  get(key: string): V | undefined {
    return this.#entries.get(key)?.value
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /**
   * Stores an entry for `ttlMs`, which may be `Infinity`. A time of 0 or a size that does not fit removes the entry.
   */
  set(tenant: string, key: string, value: V, size: number, ttlMs: number): void {
    this.#entries.delete(key)
    if (ttlMs <= 0 || size > this.#maxEntry || !this.#makeRoom(tenant, size)) return
    let keys = this.#keys.get(tenant)
    if (!keys) {
      keys = new Set()
      this.#keys.set(tenant, keys)
    }
    keys.add(key)
    // lru-cache treats a ttl of 0 as unlimited.
    this.#entries.set(key, { tenant, value, size }, { size, ttl: Number.isFinite(ttlMs) ? ttlMs : 0 })
  }

  /** Live entries with their remaining time, the most recently used last. */
  *all(): Generator<{ readonly tenant: string; readonly key: string; readonly value: V; readonly ttlMs: number }> {
    for (const key of this.#entries.rkeys()) {
      const entry = this.#entries.peek(key)
      if (!entry) continue
      yield { tenant: entry.tenant, key, value: entry.value, ttlMs: this.#entries.getRemainingTTL(key) }
    }
  }

  /** Makes room for an entry. False when the tenant's share is too small even without its other entries. */
  #makeRoom(tenant: string, size: number): boolean {
    for (;;) {
      const lack = this.#share.lack(tenant, size)
      if (lack === undefined) return this.#share.acquire(tenant, size)
      const loser = lack === 'share' ? tenant : this.#share.excessive
      if (!(loser === undefined ? this.#entries.pop() : this.#dropOldest(loser))) return false
    }
  }

  #dropOldest(tenant: string): boolean {
    const oldest = this.#keys.get(tenant)?.values().next().value
    return oldest !== undefined && this.#entries.delete(oldest)
  }

  #left(key: string, { tenant, size, value }: Entry<V>): void {
    this.#share.release(tenant, size)
    const keys = this.#keys.get(tenant)!
    keys.delete(key)
    if (keys.size === 0) this.#keys.delete(tenant)
    this.#onLeft?.(value)
  }
}
