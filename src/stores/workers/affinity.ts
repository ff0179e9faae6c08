/** Session affinity shared by the workers of one machine: each sends its entries to the others. */
import { MemoryAffinity } from '../memory/affinity.ts'
import { FairEntries } from '../memory/fair-entries.ts'

/** Recently shared entries, so that they are not sent again with every request. */
const MAX_SENT_SESSIONS = 20_000
/** Entries are sent together, this long after the first. */
const GATHER_MS = 20

/** An entry as it is sent between processes. */
export type AffinityEntry = readonly [key: string, offer: string, ttlMs: number, tenant: string]

/**
 * The primary orders the messages and sends each to all workers, including the sender, so that the last entry wins
 * everywhere. An entry that is set again with the same offer is sent when half of its lifetime has passed.
 */
export class SharedAffinity extends MemoryAffinity {
  readonly #tell: (entries: readonly AffinityEntry[]) => void
  readonly #now: () => number
  readonly #sent: FairEntries<{ readonly offer: string; readonly again: number }>
  #gathered = new Map<string, AffinityEntry>()
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (entries: readonly AffinityEntry[]) => void, now: () => number = () => performance.now()) {
    super(now)
    this.#tell = tell
    this.#now = now
    this.#sent = new FairEntries({ limit: MAX_SENT_SESSIONS, now })
  }

  override set(key: string, offer: string, ttlMs: number, tenant: string): void {
    super.set(key, offer, ttlMs, tenant)
    const sent = this.#sent.get(key)
    if (sent?.offer === offer && this.#now() < sent.again) return
    this.#note(key, offer, ttlMs, tenant)
    this.#gathered.set(key, [key, offer, ttlMs, tenant])
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  /** Applies entries of a worker. */
  learn(entries: readonly AffinityEntry[]): void {
    for (const [key, offer, ttlMs, tenant] of entries) {
      super.set(key, offer, ttlMs, tenant)
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

/** Keeps shared entries for workers that start later. */
export class AffinityBoard {
  readonly #entries: FairEntries<string>

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#entries = new FairEntries({ limit: MAX_SENT_SESSIONS, now })
  }

  note(entries: readonly AffinityEntry[]): void {
    for (const [key, offer, ttlMs, tenant] of entries) this.#entries.set(tenant, key, offer, 1, ttlMs)
  }

  /** Live entries with their remaining time, the most recent last. */
  all(): AffinityEntry[] {
    return [...this.#entries.all()].map(({ key, value, ttlMs, tenant }) => [key, value, ttlMs, tenant])
  }
}
