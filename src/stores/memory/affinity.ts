/** Session and model affinity to offers, in this process. */
import type { AffinityStore } from '../../core/ports.ts'
import { FairEntries } from './fair-entries.ts'

/** Each entry takes about half a kilobyte. */
const MAX_SESSIONS = 20_000

/** Entries are bounded in number, shared among tenants, and end after their `ttlMs`. */
export class MemoryAffinity implements AffinityStore {
  readonly #entries: FairEntries<string>

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#entries = new FairEntries({ limit: MAX_SESSIONS, now })
  }

  get(key: string): string | undefined {
    return this.#entries.get(key)
  }

  set(key: string, offer: string, ttlMs: number, tenant: string): void {
    this.#entries.set(tenant, key, offer, 1, ttlMs)
  }
}
