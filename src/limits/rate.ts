/** A token bucket: so many at once, and as many again as time passes. */
export class TokenBucket {
  readonly #size: number
  readonly #perSecond: number
  #tokens: number
  #at = 0

  /** `size` may be taken at once. */
  constructor(size: number, perSecond: number) {
    this.#size = size
    this.#perSecond = perSecond
    this.#tokens = size
  }

  /** Takes `count` at `now`, in milliseconds that ascend, also where fewer are left: then they are owed. */
  take(count: number, now: number): void {
    this.#tokens = Math.min(this.#size, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond) - count
    this.#at = now
  }

  /** Gives back what was taken, up to the size. */
  give(count: number): void {
    this.#tokens = Math.min(this.#size, this.#tokens + count)
  }

  /** Milliseconds from the last `take` until nothing is owed; 0 where nothing is. */
  get owedMs(): number {
    return (Math.max(0, -this.#tokens) / this.#perSecond) * 1000
  }
}
