/** Entries of tenants within one bound. A tenant that passes its share loses its own oldest entries, never another's. */
import { LRUCache } from 'lru-cache'
import { FairShare, type Shares } from '../../core/fair-share.ts'

/** Alone, a tenant may use all of it: its entries leave when another one needs the room. */
const SHARES: Shares = { alone: 1, contended: 1 / 2 }

interface Entry<V> {
  readonly tenant: string
  readonly value: V
  readonly size: number
}

export interface FairEntriesOptions<V> {
  /** Sum of the sizes of all entries. */
  readonly limit: number
  /** A larger entry is not kept. */
  readonly maxEntry?: number
  /** Milliseconds; monotonic. */
  readonly now?: () => number
  /** Told of every value that leaves. */
  readonly left?: (value: V) => void
}

export class FairEntries<V> {
  readonly #maxEntry: number
  readonly #share: FairShare
  readonly #entries: LRUCache<string, Entry<V>>
  /** Keys by tenant, in the order in which they were set. */
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

  /** Keeps an entry for so long, which may be `Infinity`; a time of 0 or a size that does not fit keeps nothing, and drops what was there. */
  set(tenant: string, key: string, value: V, size: number, ttlMs: number): void {
    this.#entries.delete(key)
    if (ttlMs <= 0 || size > this.#maxEntry || !this.#makeRoom(tenant, size)) return
    let keys = this.#keys.get(tenant)
    if (!keys) {
      keys = new Set()
      this.#keys.set(tenant, keys)
    }
    keys.add(key)
    // Of lru-cache's options, a ttl of 0 means for ever.
    this.#entries.set(key, { tenant, value, size }, { size, ttl: Number.isFinite(ttlMs) ? ttlMs : 0 })
  }

  /** Those that hold still with the time that they have left, the one that was used last at the end. */
  *all(): Generator<{ readonly tenant: string; readonly key: string; readonly value: V; readonly ttlMs: number }> {
    for (const key of this.#entries.rkeys()) {
      const entry = this.#entries.peek(key)
      if (!entry) continue
      yield { tenant: entry.tenant, key, value: entry.value, ttlMs: this.#entries.getRemainingTTL(key) }
    }
  }

  /** Takes room for an entry. False when the share would be too small even without the tenant's other entries. */
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
