/** One sliding window of counted units. */

/** A window is cut into at most so many buckets; the units of one leave together, when its newest is a window old. */
const BUCKETS = 60

/** Milliseconds that one bucket of a window lasts. */
export const bucketMs = (windowMs: number): number => Math.max(1, Math.ceil(windowMs / BUCKETS))

/** Whole milliseconds from `now` until `leavesAt`; none is more than a window away, unless the clock ran backwards. */
export const untilLeft = (leavesAt: number, now: number, windowMs: number): number =>
  Math.min(windowMs, Math.max(0, Math.ceil(leavesAt - now)))

/** Bucket number b stands in slot b modulo the number of buckets that a window can touch. */
export class SlidingWindow {
  readonly #windowMs: number
  readonly #width: number
  readonly #units: Uint32Array
  /** When the newest unit of each bucket was added. */
  readonly #newest: Float64Array
  #sum = 0
  /** No unit is in an older bucket. */
  #oldest = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
    this.#width = bucketMs(windowMs)
    const span = Math.ceil(windowMs / this.#width) + 1
    this.#units = new Uint32Array(span)
    this.#newest = new Float64Array(span)
  }

  /** Of the window that ends at the time of the last `advance`. */
  get sum(): number {
    return this.#sum
  }

  /** When the oldest bucket with a unit leaves the window; for use after `advance`, while there is a unit. */
  get leavesAt(): number {
    return this.#newest[this.#oldest % this.#newest.length]! + this.#windowMs
  }

  /**
   * Moves on to `now`, in milliseconds, and returns its bucket; while the clock runs backwards, time stands still. Each
   * bucket is passed once, so that this costs O(1) on average.
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

  /** `bucket` is what `advance` has just returned; `at` is when the last of the units may be used. */
  add(bucket: number, units: number, at: number): void {
    const slot = bucket % this.#units.length
    const newest = this.#units[slot] === 0 ? bucket * this.#width : this.#newest[slot]!
    this.#newest[slot] = Math.max(newest, at)
    this.#units[slot] = this.#units[slot]! + units
    this.#sum += units
  }

  /** None of the units of `bucket` is used after `now`, whatever was said when they were added. */
  settle(bucket: number, now: number): void {
    const slot = bucket % this.#units.length
    this.#newest[slot] = Math.min(this.#newest[slot]!, Math.max(now, bucket * this.#width))
  }

  /** Takes units back out of the bucket that they were added to, unless that has left the window. */
  remove(bucket: number, units: number): void {
    const span = this.#units.length
    if (bucket < this.#oldest || bucket >= this.#oldest + span) return
    const slot = bucket % span
    const removed = Math.min(units, this.#units[slot]!)
    this.#units[slot] = this.#units[slot]! - removed
    this.#sum -= removed
  }
}
