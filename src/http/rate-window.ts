/**
 * How fast a body comes: enough bytes must come in each window (docs/contract.md#shares); a faster begin earns no rest.
 * Times are in milliseconds.
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
