/** How many retries may go to targets that fail: what keeps an outage from being multiplied (reliability C). */

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
