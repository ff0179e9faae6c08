/** How fast bytes come, or go: a client that is slower than this is cut off. */

/** Bytes must move at this rate in each window (docs/contract.md#shares); a faster begin earns no rest. */
const MIN_BYTES_PER_MS = (4 * 1024) / 1000

/** Times are in milliseconds. */
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

  /** Whether too few bytes have moved in the window that ends now; a new one begins where it ends. */
  isSlow(now: number): boolean {
    const ms = now - this.#since
    if (ms < this.#windowMs) return false
    const isSlow = this.#bytes < ms * MIN_BYTES_PER_MS
    this.#since = now
    this.#bytes = 0
    return isSlow
  }
}
