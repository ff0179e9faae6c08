/** Pins that the workers of one machine agree on: each tells the others what it has set. */
import type { AffinityStore } from '../../core/ports.ts'
import { FairEntries } from '../memory/fair-entries.ts'

/** Those that were told last are remembered, so that they are not told again with every request. */
const MAX_TOLD = 20_000
/** Pins that were set are told together, so long after the first of them. */
const GATHER_MS = 20

export type AffinityEntry = readonly [key: string, offer: string, ttlMs: number, tenant: string]

/**
 * Whoever orders the workers' messages sends each to all of them, its sender included, so that the last one holds for
 * everybody. An entry that is set again, with the same offer, is told when half of its time is over.
 */
export class SharedAffinity implements AffinityStore {
  readonly #own: AffinityStore
  readonly #tell: (entries: readonly AffinityEntry[]) => void
  readonly #now: () => number
  readonly #sent: FairEntries<{ readonly offer: string; readonly again: number }>
  #gathered = new Map<string, AffinityEntry>()
  #timer: NodeJS.Timeout | undefined

  constructor(
    own: AffinityStore,
    tell: (entries: readonly AffinityEntry[]) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#own = own
    this.#tell = tell
    this.#now = now
    this.#sent = new FairEntries({ limit: MAX_TOLD, now })
  }

  get(key: string): string | undefined {
    return this.#own.get(key)
  }

  set(key: string, offer: string, ttlMs: number, tenant: string): void {
    this.#own.set(key, offer, ttlMs, tenant)
    const sent = this.#sent.get(key)
    if (sent?.offer === offer && this.#now() < sent.again) return
    this.#note(key, offer, ttlMs, tenant)
    this.#gathered.set(key, [key, offer, ttlMs, tenant])
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  /** What a worker has told. */
  learn(entries: readonly AffinityEntry[]): void {
    for (const [key, offer, ttlMs, tenant] of entries) {
      this.#own.set(key, offer, ttlMs, tenant)
      this.#note(key, offer, ttlMs, tenant)
    }
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#gathered.size === 0) return
    const entries = [...this.#gathered.values()]
    this.#gathered = new Map()
    this.#tell(entries)
  }

  #note(key: string, offer: string, ttlMs: number, tenant: string): void {
    this.#sent.set(tenant, key, { offer, again: this.#now() + ttlMs / 2 }, 1, ttlMs)
  }
}

/** What was told of entries, for a worker that comes later. */
export class AffinityBoard {
  readonly #entries: FairEntries<string>

  /** `now` is a clock in milliseconds, monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#entries = new FairEntries({ limit: MAX_TOLD, now })
  }

  note(entries: readonly AffinityEntry[]): void {
    for (const [key, offer, ttlMs, tenant] of entries) this.#entries.set(tenant, key, offer, 1, ttlMs)
  }

  /** Those that hold still, for the rest of their time; the one that was told last comes last. */
  all(): AffinityEntry[] {
    return [...this.#entries.all()].map(({ key, value, ttlMs, tenant }) => [key, value, ttlMs, tenant])
  }
}
