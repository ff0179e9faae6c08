/** Rates: of what is taken, and of what must come. Times are in milliseconds that ascend. */

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

  /** Takes `count` at `now`, also where fewer are left: then they are owed. */
  take(count: number, now: number): void {
    this.#fill(now)
    this.#tokens -= count
  }

  /** Takes `count` at `now`; false, and takes none, where fewer are left. */
  tryTake(count: number, now: number): boolean {
    this.#fill(now)
    if (this.#tokens < count) return false
    this.#tokens -= count
    return true
  }

  /** Adds tokens, up to the size. */
  give(count: number): void {
    this.#tokens = Math.min(this.#size, this.#tokens + count)
  }

  /** Milliseconds from the last `take` until nothing is owed; 0 where nothing is. */
  get owedMs(): number {
    return (Math.max(0, -this.#tokens) / this.#perSecond) * 1000
  }

  #fill(now: number): void {
    this.#tokens = Math.min(this.#size, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
  }
}

/**
 * How fast a body comes: enough bytes must come in each window (docs/contract.md#shares); a faster begin earns no rest.
 */
export class RateWindow {
  readonly #windowMs: number
  #since: number
  #bytes = 0

  constructor(windowMs: number, now: number) {
    this.#windowMs = windowMs
    this.#since = now
  }

  moved(bytes: number): void {
    this.#bytes += bytes
  }

  /** Whether less than `minRate`, in bytes a second, has come in the window that ends now; a new one begins where it ends. */
  isSlow(now: number, minRate: number): boolean {
    const ms = now - this.#since
    if (ms < this.#windowMs) return false
    const isSlow = this.#bytes < (ms / 1000) * minRate
    this.#since = now
    this.#bytes = 0
    return isSlow
  }
}

/** How fast a client takes what waits for it; one that is slower than the least rate, and late in all, is cut off. */
export class ResponseRate {
  readonly #minRate: number
  readonly #graceMs: number
  /** Milliseconds by which the client may still be late. */
  #leftMs: number
  /** Since when something waits, and in how many milliseconds it is taken at the least rate. */
  #since = 0
  #dueMs = 0

  /** `minRate` is in bytes a second. */
  constructor(minRate: number, graceMs: number) {
    this.#minRate = minRate
    this.#graceMs = graceMs
    this.#leftMs = graceMs
  }

  /** So many bytes wait from `now` on, in milliseconds. */
  begin(bytes: number, now: number): void {
    this.#since = now
    this.#dueMs = (bytes / this.#minRate) * 1000
  }

  /** They cannot be taken yet. */
  postpone(now: number): void {
    this.#since = now
  }

  /** They were taken: the time that was left over, or was too much, counts with the next ones. */
  end(now: number): void {
    this.#leftMs = Math.min(this.#graceMs, this.#leftMs + this.#dueMs - (now - this.#since))
  }

  isSlow(now: number): boolean {
    return now - this.#since > this.#leftMs + this.#dueMs
  }
}
