/** Which offer a session, or a model, was given; in this process. */
import { LRUCache } from 'lru-cache'
import type { Pins } from '../../core/ports.ts'

/** Each takes about half a kilobyte. */
const MAX_PINS = 20_000

export class MemoryPins implements Pins {
  readonly #pins: LRUCache<string, string>

  /** `now` is a clock in milliseconds, monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#pins = new LRUCache({ max: MAX_PINS, ttl: 1, ttlResolution: 0, perf: { now } })
  }

  get(key: string): string | undefined {
    return this.#pins.get(key)
  }

  set(key: string, offer: string, ttlMs: number): void {
    // Of lru-cache's options, a ttl of 0 would mean for ever.
    if (ttlMs > 0) this.#pins.set(key, offer, { ttl: ttlMs })
    else this.#pins.delete(key)
  }
}
