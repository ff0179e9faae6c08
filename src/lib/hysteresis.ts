/** A limit with some slack below it, so that what is near it does not flutter. */
export class Hysteresis {
  readonly #high: number
  readonly #low: number
  #over = false

  /** Over when a value exceeds `high`, and from then on until one is no more than `low`. */
  constructor(high: number, low: number) {
    this.#high = high
    this.#low = low
  }

  isOver(value: number): boolean {
    this.#over = value > (this.#over ? this.#low : this.#high)
    return this.#over
  }
}
