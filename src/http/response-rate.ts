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
