/** Sliding-window counters of one process. */
import { LRUCache } from 'lru-cache'
import type { Counters, Quota } from '../../core/ports.ts'

/** A window is cut into at most so many buckets; a unit counts up to one bucket longer than the window, never shorter. */
const BUCKETS = 60
const MAX_KEYS = 10_000

/** The units of one key. Bucket number b stands in slot b modulo the length, which is what a window can touch. */
interface Window {
  readonly units: Uint32Array
  sum: number
  /** No unit is in an older bucket. */
  oldest: number
}

export class MemoryCounters implements Counters {
  readonly #now: () => number
  readonly #windows = new LRUCache<string, Window>({ max: MAX_KEYS })
  /** Places that are taken; a key with none is not there. */
  readonly #taken = new Map<string, number>()

  /** `now` is a clock in milliseconds, monotonic if possible; while it runs backwards, time stands still. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** In no span of `windowMs` are more than `limit` units admitted. A key counts apart for each `windowMs`. */
  take(key: string, limit: number, windowMs: number): Quota {
    const width = Math.max(1, Math.ceil(windowMs / BUCKETS))
    const now = Math.floor(this.#now())
    const window = this.#window(`${windowMs} ${key}`, Math.ceil(windowMs / width) + 1)
    const span = window.units.length
    const bucket = Math.max(window.oldest, Math.floor(now / width))
    expire(window, bucket)
    const allowed = window.sum < limit
    if (allowed) {
      const slot = bucket % span
      window.units[slot] = window.units[slot]! + 1
      window.sum++
    }
    return {
      allowed,
      remaining: Math.max(0, limit - window.sum),
      resetMs: Math.max(0, (window.oldest + span) * width - now),
    }
  }

  enter(key: string, limit: number): boolean {
    const taken = this.#taken.get(key) ?? 0
    if (taken >= limit) return false
    this.#taken.set(key, taken + 1)
    return true
  }

  leave(key: string): void {
    const taken = this.#taken.get(key) ?? 0
    if (taken > 1) this.#taken.set(key, taken - 1)
    else this.#taken.delete(key)
  }

  #window(key: string, span: number): Window {
    const known = this.#windows.get(key)
    if (known) return known
    const fresh: Window = { units: new Uint32Array(span), sum: 0, oldest: 0 }
    this.#windows.set(key, fresh)
    return fresh
  }
}

/** Drops what has left the window that ends in `bucket`. Each bucket is passed once, so a take costs O(1) on average. */
function expire(window: Window, bucket: number): void {
  const span = window.units.length
  while (window.sum > 0) {
    const slot = window.oldest % span
    const units = window.units[slot]!
    if (units > 0 && window.oldest > bucket - span) return
    window.sum -= units
    window.units[slot] = 0
    window.oldest++
  }
  window.oldest = bucket
}
