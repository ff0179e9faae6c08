/** Bounds retries at failing targets, so that an outage is not multiplied (docs/contract.md#circuits-and-retries). */

/** The time in which an empty reserve fills by itself: little traffic must not keep failover off. */
const REFILL_MS = 60_000

/** Allows `reserve + share × n` retries to `n` requests, and a reserve more each minute. */
export class RetryBudget {
  readonly #share: number
  readonly #reserve: number
  readonly #now: () => number
  #left: number
  #filledAt: number

  constructor(share: number, reserve: number, now: () => number = () => performance.now()) {
    this.#now = now
    this.#filledAt = now()
    this.#share = share
    this.#reserve = reserve
    this.#left = reserve
  }

  /** A request has come. */
  earn(): void {
    this.#left = Math.min(this.#reserve, this.#left + this.#share)
  }

  take(): boolean {
    const now = this.#now()
    const gained = (this.#reserve * (now - this.#filledAt)) / REFILL_MS
    this.#filledAt = now
    this.#left = Math.min(this.#reserve, this.#left + gained)
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
