/** Which offer a session, or a model, was given; in this process. */
import type { AffinityStore } from '../../core/ports.ts'
import { FairEntries } from './fair-entries.ts'

/** Each takes about half a kilobyte. */
const MAX_PINS = 20_000

export class MemoryPins implements AffinityStore {
  readonly #pins: FairEntries<string>

  /** `now` is a clock in milliseconds, monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#pins = new FairEntries({ limit: MAX_PINS, now })
  }

  get(key: string): string | undefined {
    return this.#pins.get(key)
  }

  set(key: string, offer: string, ttlMs: number, tenant: string): void {
    this.#pins.set(tenant, key, offer, 1, ttlMs)
  }
}
