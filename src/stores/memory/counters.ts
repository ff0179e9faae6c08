/** Sliding-window counters of one process. */
import type { Counters, Quota, Reservation } from '../../core/ports.ts'
import { Keyed } from './keyed.ts'
import { SlidingWindow, untilLeft } from './window.ts'

/** Counts units per window and concurrent units per key, exactly, within the bounds of `Keyed`. */
export class MemoryCounters implements Counters {
  readonly #now: () => number
  readonly #windows = new Keyed((_, windowMs) => new SlidingWindow(windowMs))
  /** Concurrent units by key; a key without any is absent. */
  readonly #taken = new Map<string, number>()

  /** `now`: a clock in milliseconds, monotonic if possible; time stands still while it runs backwards. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Admits at most `limit` units in any span of `windowMs`. A key counts separately for each `windowMs`. */
  take(key: string, limit: number, windowMs: number): Quota {
    return this.reserveIn(key, limit, windowMs, 1)
  }

  reserve(key: string, limit: number, windowMs: number, units: number): Reservation {
    const { bucket, ...quota } = this.reserveIn(key, limit, windowMs, units)
    const correct = (actual: number): void => {
      if (quota.allowed) this.correct(key, windowMs, bucket, actual - units)
    }
    return { ...quota, correct }
  }

  /** Reserves, and says in which bucket, for `correct`. */
  reserveIn(key: string, limit: number, windowMs: number, units: number): Quota & { readonly bucket: number } {
    const window = this.#windows.of(key, windowMs)
    const now = this.#now()
    const bucket = window.advance(now)
    const allowed = window.sum < limit
    if (allowed) window.add(bucket, units, now)
    const resetMs = window.sum > 0 ? untilLeft(window.leavesAt, now, windowMs) : 0
    return { allowed, remaining: Math.max(0, limit - window.sum), resetMs, bucket }
  }

  /** Adds `units` now, or takes as many from the bucket that they were reserved in. */
  correct(key: string, windowMs: number, bucket: number, units: number): void {
    const window = this.#windows.of(key, windowMs)
    const now = this.#now()
    const current = window.advance(now)
    if (units > 0) window.add(current, units, now)
    else window.remove(bucket, -units)
  }

  peek(key: string, limit: number, windowMs: number): Quota {
    const window = this.#windows.of(key, windowMs)
    const now = this.#now()
    window.advance(now)
    const remaining = Math.max(0, limit - window.sum)
    const resetMs = window.sum > 0 ? untilLeft(window.leavesAt, now, windowMs) : 0
    return { allowed: remaining > 0, remaining, resetMs }
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
}
