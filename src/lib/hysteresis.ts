/** A switch with two thresholds, so that a value near one of them does not toggle it. */
export class Hysteresis {
  readonly #high: number
  readonly #low: number
  #over = false

  /** Turns on when a value exceeds `high`, and off when one is at most `low`. */
  constructor(high: number, low: number) {
    this.#high = high
    this.#low = low
  }

  isOver(value: number): boolean {
    this.#over = value > (this.#over ? this.#low : this.#high)
    return this.#over
  }
}
