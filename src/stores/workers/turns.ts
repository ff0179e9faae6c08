/** Reasoning kept for later turns, which may reach another worker: the primary keeps a copy. */
import type { CachedReply, TurnStore } from '../../core/ports.ts'
import { FairEntries } from '../memory/fair-entries.ts'

const MIB = 1024 * 1024
/** Larger entries stay with their worker: they would block the channel. */
const MAX_ENTRY_BYTES = MIB / 4
/** Size limit of one answer of the primary. */
const MAX_ANSWER_BYTES = 4 * MIB
const MAX_ENTRIES_BYTES = 64 * MIB

/** A turn as it is sent between processes. */
export type KeptTurn = readonly [key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string]

/** Calls of a worker to the primary. */
interface TurnPort {
  keep(turn: KeptTurn): void
  find(keys: readonly string[]): Promise<readonly KeptTurn[]>
}

/** The turns of this worker, then the primary's copies. */
export class SharedTurns implements TurnStore {
  readonly #own: TurnStore
  readonly #primary: TurnPort

  constructor(own: TurnStore, primary: TurnPort) {
    this.#own = own
    this.#primary = primary
  }

  async find(keys: readonly string[], tenant: string): Promise<ReadonlyMap<string, CachedReply>> {
    const own = await this.#own.find(keys, tenant)
    const missing = keys.filter(key => !own.has(key))
    if (missing.length === 0) return own
    const found = new Map(own)
    // Without the primary the turn continues as for a client without kept reasoning.
    for (const [key, reply, bytes, ttlMs, owner] of await this.#primary.find(missing).catch(() => [])) {
      this.#own.set(key, reply, bytes, ttlMs, owner)
      found.set(key, reply)
    }
    return found
  }

  set(key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string): void {
    this.#own.set(key, reply, bytes, ttlMs, tenant)
    if (bytes <= MAX_ENTRY_BYTES) this.#primary.keep([key, reply, bytes, ttlMs, tenant])
  }
}

/** The primary's part. */
export class TurnBoard {
  readonly #entries: FairEntries<{
    readonly reply: CachedReply
    readonly bytes: number
    readonly until: number
    readonly tenant: string
  }>
  readonly #now: () => number

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#entries = new FairEntries({ limit: MAX_ENTRIES_BYTES, maxEntry: MAX_ENTRY_BYTES, now })
  }

  keep([key, reply, bytes, ttlMs, tenant]: KeptTurn): void {
    this.#entries.set(tenant, key, { reply, bytes, until: this.#now() + ttlMs, tenant }, Math.max(1, bytes), ttlMs)
  }

  /** The kept entries among the keys, in their order, as many as one answer may hold; each with its remaining time. */
  find(keys: readonly string[]): KeptTurn[] {
    const found: KeptTurn[] = []
    let size = 0
    for (const key of keys) {
      const entry = this.#entries.get(key)
      if (!entry) continue
      size += entry.bytes
      if (size > MAX_ANSWER_BYTES) break
      found.push([key, entry.reply, entry.bytes, entry.until - this.#now(), entry.tenant])
    }
    return found
  }
}
