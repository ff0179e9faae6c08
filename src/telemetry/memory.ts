/** Share of the heap in use, sampled. */
import { getHeapStatistics } from 'node:v8'

const SAMPLE_MS = 250

/** Samples the used share of the heap limit four times a second; a sample costs microseconds. */
export class Memory {
  readonly #timer: NodeJS.Timeout
  #share = 0

  constructor() {
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
    this.#timer.unref()
    this.#sample()
  }

  /** From 0 to 1. Uncollected garbage counts as used; near the limit there is little of it. */
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
