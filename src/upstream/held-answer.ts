/** An answer that is here already. */
import type { Event } from '../core/event.ts'

type Batch = IteratorResult<readonly Event[]>

/** Gives all events at once, and then what they took of the memory budget back. */
export class HeldAnswer implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  #events: readonly Event[] | undefined
  readonly #release: () => void

  constructor(events: readonly Event[], release: () => void) {
    this.#events = events
    this.#release = release
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Batch> {
    const value = this.#events
    this.#events = undefined
    return value ? Promise.resolve({ done: false, value }) : this.return()
  }

  async return(): Promise<Batch> {
    this.#release()
    return { done: true, value: undefined }
  }
}
