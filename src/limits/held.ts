/** Values that wait for their reader and hold memory meanwhile, as in the answer of a request. */

/**
 * Gives `values` one by one. Calls `release` once: after the last one, where one fails, or where the reader stops, even before
 * the first one.
 */
export class HeldValues<T> implements AsyncIterable<T>, AsyncIterator<T> {
  #values: Iterator<T> | undefined
  readonly #release: () => void

  constructor(values: Iterable<T>, release: () => void) {
    this.#values = values[Symbol.iterator]()
    this.#release = release
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<T>> {
    try {
      const result = this.#values?.next()
      if (result && !result.done) return result
    } catch (thrown) {
      await this.return()
      throw thrown
    }
    return this.return()
  }

  async return(): Promise<IteratorResult<T>> {
    if (this.#values) this.#release()
    this.#values = undefined
    return { done: true, value: undefined }
  }
}
