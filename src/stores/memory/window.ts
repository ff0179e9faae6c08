/** One sliding window of counted units. */

/** Buckets per window; the units of a bucket leave together, when its newest unit is a window old. */
export const BUCKETS = 60

/** Duration of one bucket of a window, in milliseconds. */
export const bucketMs = (windowMs: number): number => Math.max(1, Math.ceil(windowMs / BUCKETS))

/** Whole milliseconds from `now` until `leavesAt`; at most one window, unless the clock ran backwards. */
export const untilLeft = (leavesAt: number, now: number, windowMs: number): number =>
  Math.min(windowMs, Math.max(0, Math.ceil(leavesAt - now)))

/** Bucket b is in slot b modulo the number of buckets that a window can touch. */
export class SlidingWindow {
  readonly #windowMs: number
  readonly #width: number
  readonly #units: Float64Array
  /** Time of the newest unit in each bucket. */
  readonly #newest: Float64Array
  #sum = 0
  /** Older buckets contain no units. */
  #oldest = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
    this.#width = bucketMs(windowMs)
    const span = Math.ceil(windowMs / this.#width) + 1
    this.#units = new Float64Array(span)
    this.#newest = new Float64Array(span)
  }

  /** Sum of the window that ends at the last `advance`. */
  get sum(): number {
    return this.#sum
  }

  /** When the oldest non-empty bucket leaves the window. Call after `advance`, while there are units. */
  get leavesAt(): number {
    return this.#newest[this.#oldest % this.#newest.length]! + this.#windowMs
  }

  /**
   * Advances to `now`, in milliseconds, and returns its bucket; time stands still while the clock runs backwards.
   * Passes each bucket once, so that the amortized cost is O(1).
   */
  advance(now: number): number {
    const span = this.#units.length
    const bucket = Math.max(this.#oldest, Math.floor(now / this.#width))
    while (this.#sum > 0) {
      const slot = this.#oldest % span
      const units = this.#units[slot]!
      if (units > 0 && this.#newest[slot]! + this.#windowMs > now) return bucket
      this.#sum -= units
      this.#units[slot] = 0
      this.#oldest++
    }
    this.#oldest = bucket
    return bucket
  }

  /** `bucket` is the result of the last `advance`; `at` is when the last of the units may be used. */
  add(bucket: number, units: number, at: number): void {
    const slot = bucket % this.#units.length
    const newest = this.#units[slot] === 0 ? bucket * this.#width : this.#newest[slot]!
    this.#newest[slot] = Math.max(newest, at)
    this.#units[slot] = this.#units[slot]! + units
    this.#sum += units
  }

  /** Declares that no unit of `bucket` is used after `now`, whatever `at` said when they were added. */
  settle(bucket: number, now: number): void {
    const slot = bucket % this.#units.length
    this.#newest[slot] = Math.min(this.#newest[slot]!, Math.max(now, bucket * this.#width))
  }

  /** Removes units from the bucket to which they were added, unless it has left the window. */
  remove(bucket: number, units: number): void {
    const span = this.#units.length
    if (bucket < this.#oldest || bucket >= this.#oldest + span) return
    const slot = bucket % span
    const removed = Math.min(units, this.#units[slot]!)
    this.#units[slot] = this.#units[slot]! - removed
    this.#sum -= removed
  }
}
