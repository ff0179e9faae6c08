/** Finds the principal of a key: from memory, unless somebody has changed the database since. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { KeyStore, Principal } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'

const MAX_KEYS = 10_000
/** How long a change of another process may go unseen. */
const POLL_MS = 1000
/** How long known keys are served while the database cannot be read. */
const STALE_MS = 300_000

interface KeyRow {
  id: string
  name: string
  kind: Principal['kind']
  project_id: string
  org_id: string
  account: Principal['account']
  archived_at: number | null
  expires_at: number | null
  cache_ttl_ms: number | null
}

export class SqliteKeys implements KeyStore {
  readonly #find: Statement<[string], KeyRow>
  readonly #spent: Statement<[string], Money>
  readonly #dataVersion: Statement<[], number>
  readonly #clock: () => number
  readonly #known = new LRUCache<string, Principal>({ max: MAX_KEYS })
  /** Apart from the known, so that guessing does not push them out. */
  readonly #unknown = new LRUCache<string, true>({ max: MAX_KEYS })
  #version: number | undefined
  #polledAt = Number.NEGATIVE_INFINITY
  #seenAt = Number.NEGATIVE_INFINITY

  /** `clock` is monotonic, in milliseconds. */
  constructor(db: Sqlite, clock: () => number = () => performance.now()) {
    this.#find = db.prepare(`
      SELECT keys.id, keys.name, keys.kind, keys.expires_at, keys.project_id,
        projects.org_id, projects.archived_at, projects.cache_ttl_ms, organizations.account
      FROM keys
      JOIN projects ON projects.id = keys.project_id
      JOIN organizations ON organizations.id = projects.org_id
      WHERE keys.hash = ? AND keys.revoked_at IS NULL`)
    this.#spent = db
      .prepare<[string], Money>('SELECT coalesce(sum(cost), 0) FROM usage_hourly WHERE key_id = ?')
      .pluck()
      .safeIntegers()
    this.#dataVersion = db.prepare<[], number>('PRAGMA data_version').pluck()
    this.#clock = clock
  }

  find(hash: string): Principal | undefined {
    this.#poll()
    const known = this.#known.get(hash)
    if (known || this.#unknown.get(hash)) return known
    let row: KeyRow | undefined
    try {
      row = this.#find.get(hash)
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
    if (!row) {
      this.#unknown.set(hash, true)
      return undefined
    }
    const principal = principalOf(row)
    this.#known.set(hash, principal)
    return principal
  }

  async spent(keyId: string): Promise<Money> {
    return this.#spent.get(keyId) ?? 0n
  }

  /** Forgets all; for changes of this process, which `data_version` does not count. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  /** A failing read is not reported here: known keys are good for a while, and unknown ones fail by themselves. */
  #poll(): void {
    const now = this.#clock()
    if (now - this.#polledAt < POLL_MS) return
    this.#polledAt = now
    try {
      const version = this.#dataVersion.get()
      if (version !== this.#version) this.clear()
      this.#version = version
      this.#seenAt = now
    } catch {
      if (now - this.#seenAt > STALE_MS) this.clear()
    }
  }
}

const principalOf = (row: KeyRow): Principal => ({
  keyId: row.id,
  keyName: row.name,
  kind: row.kind,
  projectId: row.project_id,
  orgId: row.org_id,
  account: row.account,
  archived: row.archived_at !== null,
  expiresAt: row.expires_at ?? undefined,
  cacheTtlMs: row.cache_ttl_ms ?? undefined,
})
