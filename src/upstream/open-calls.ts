/** Calls that something is expected of: to one provider, and with it to all own providers of its owner. */
export class OpenCalls {
  readonly #owner: OpenCalls | undefined
  #count = 0

  constructor(owner?: OpenCalls) {
    this.#owner = owner
  }

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count++
    this.#owner?.begin()
  }

  end(): void {
    this.#count--
    this.#owner?.end()
  }
}
