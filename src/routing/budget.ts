/** Bounds retries at failing targets, so that an outage is not multiplied (docs/contract.md#circuits-and-retries). */

/** Of `n` requests, at most `reserve + share × n` retries are taken. */
export class RetryBudget {
  readonly #share: number
  readonly #reserve: number
  #left: number

  constructor(share: number, reserve: number) {
    this.#share = share
    this.#reserve = reserve
    this.#left = reserve
  }

  /** A request has come. */
  earn(): void {
    this.#left = Math.min(this.#reserve, this.#left + this.#share)
  }

  take(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
