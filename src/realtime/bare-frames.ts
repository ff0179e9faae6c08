/** Bounds frames that carry nothing: pings, pongs that no ping awaits, and empty messages. */

/** At once. Programs send a few in a minute, so that connections stay open. */
const BURST = 60
const PER_SECOND = 2

export class BareFrames {
  #left = BURST
  #at = 0

  /** Whether one more may come at `now`, in milliseconds that ascend. */
  take(now: number): boolean {
    this.#left = Math.min(BURST, this.#left + ((now - this.#at) / 1000) * PER_SECOND)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
