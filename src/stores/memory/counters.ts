/** Sliding-window counters of one process. */
import { LRUCache } from 'lru-cache'
import type { Counters, Quota } from '../../core/ports.ts'

/** A window is cut into so many buckets: a unit counts up to a sixtieth longer than the window, never shorter. */
const BUCKETS = 60
/** Buckets that a window can touch: it may begin and end within one. */
const SPAN = BUCKETS + 1
const MAX_KEYS = 10_000

/** Units of one key, by bucket number modulo SPAN. Every bucket outside [oldest, oldest + SPAN) is zero. */
interface Window {
  readonly units: Uint32Array
  sum: number
  /** No unit is in an older bucket. */
  oldest: number
  newest: number
}

export class MemoryCounters implements Counters {
  readonly #now: () => number
  readonly #windows = new LRUCache<string, Window>({ max: MAX_KEYS })

  /** `now` is a clock in milliseconds, monotonic if possible; while it runs backwards, time stands still. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** In no span of `windowMs` are more than `limit` units admitted. A key counts apart for each `windowMs`. */
  take(key: string, limit: number, windowMs: number): Quota {
    const width = Math.max(1, Math.ceil(windowMs / BUCKETS))
    const now = Math.floor(this.#now())
    const window = this.#window(`${windowMs} ${key}`)
    const bucket = Math.max(window.newest, Math.floor(now / width))
    expire(window, bucket)
    const allowed = window.sum < limit
    if (allowed) {
      const slot = bucket % SPAN
      window.units[slot] = window.units[slot]! + 1
      window.sum++
    }
    return {
      allowed,
      remaining: Math.max(0, limit - window.sum),
      resetMs: Math.max(0, (window.oldest + SPAN) * width - now),
    }
  }

  #window(key: string): Window {
    const known = this.#windows.get(key)
    if (known) return known
    const fresh: Window = { units: new Uint32Array(SPAN), sum: 0, oldest: 0, newest: 0 }
    this.#windows.set(key, fresh)
    return fresh
  }
}

/** Drops what has left the window that ends in `bucket`. Each bucket is passed once, so a take costs O(1) on average. */
function expire(window: Window, bucket: number): void {
  window.newest = bucket
  while (window.sum > 0) {
    const slot = window.oldest % SPAN
    const units = window.units[slot]!
    if (units > 0 && window.oldest > bucket - SPAN) return
    window.sum -= units
    window.units[slot] = 0
    window.oldest++
  }
  window.oldest = bucket
}
