/** One sliding window of counted units. */

/** A window is cut into at most so many buckets; a unit counts up to one bucket longer than the window, never shorter. */
const BUCKETS = 60

/** Milliseconds that one bucket of a window lasts. */
export const bucketMs = (windowMs: number): number => Math.max(1, Math.ceil(windowMs / BUCKETS))

/** Bucket number b stands in slot b modulo the number of buckets that a window can touch. */
export class SlidingWindow {
  readonly #width: number
  readonly #units: Uint32Array
  #sum = 0
  /** No unit is in an older bucket. */
  #oldest = 0

  constructor(windowMs: number) {
    this.#width = bucketMs(windowMs)
    this.#units = new Uint32Array(Math.ceil(windowMs / this.#width) + 1)
  }

  /** Of the window that ends at the time of the last `advance`. */
  get sum(): number {
    return this.#sum
  }

  /** When the oldest unit leaves the window. */
  get leavesAt(): number {
    return (this.#oldest + this.#units.length) * this.#width
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
      if (units > 0 && this.#oldest > bucket - span) return bucket
      this.#sum -= units
      this.#units[slot] = 0
      this.#oldest++
    }
    this.#oldest = bucket
    return bucket
  }

  /** `bucket` is what `advance` has just returned. */
  add(bucket: number, units: number): void {
    const slot = bucket % this.#units.length
    this.#units[slot] = this.#units[slot]! + units
    this.#sum += units
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
