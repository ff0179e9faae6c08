/** How full the heap is, as of the last look at it. */
import { getHeapStatistics } from 'node:v8'

const SAMPLE_MS = 250

/** The share of the heap's limit that is in use; looking costs microseconds, so it is done four times a second. */
export class Memory {
  readonly #timer: NodeJS.Timeout
  #share = 0

  constructor() {
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
    this.#timer.unref()
    this.#sample()
  }

  /** From 0 to 1. Garbage that was not collected yet counts as used; near the limit there is little of it. */
  get share(): number {
    return this.#share
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    this.#share = used_heap_size / heap_size_limit
  }
}
