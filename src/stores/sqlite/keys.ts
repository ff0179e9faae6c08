/** Finds the principal of a key: from memory, unless somebody has changed the database since. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Discount, KeyStatus, KeyStore, Principal, ProjectMode, Role, Subscription } from '../../core/ports.ts'
import { BudgetReader } from './budgets.ts'
import type { Sqlite } from './open.ts'
import { planState, readSubscription, type SubscriptionRow } from './subscriptions.ts'

const MAX_KEYS = 10_000
/** How long a change of another process may go unseen: with a request's own time it is less than a second. */
const POLL_MS = 500
/** How long known keys are served while the database cannot be read. */
const STALE_MS = 300_000

interface KeyRow {
  id: string
  name: string
  kind: Principal['kind']
  project_id: string
  org_id: string
  org_name: string
  account: Principal['account']
  mode: ProjectMode
  archived_at: number | null
  expires_at: number | null
  cache_ttl_ms: number | null
  member_id: string | null
  role: Role | null
  access: number
  plan: Subscription['plan'] | null
  plan_since: number
  overflow: number
  retains: number
  since: number
  limited: number
}
interface DiscountRow {
  /** '' is every organization. */
  org_id: string
  provider: string
  model: string
  millionths: number
}

/** Owners and admins have access to every project. */
const KEY = `
  SELECT keys.id, keys.name, keys.kind, keys.expires_at, keys.project_id,
    projects.org_id, projects.archived_at, projects.cache_ttl_ms, projects.mode,
    organizations.name AS org_name, organizations.account, organizations.retains, organizations.created_at AS since,
    members.id AS member_id, members.role,
    keys.created_by IS NULL OR coalesce(
      members.removed_at IS NULL AND members.org_id = projects.org_id AND (
        members.all_projects = 1 OR members.role <> 'developer' OR EXISTS (
          SELECT 1 FROM member_projects WHERE member_id = members.id AND project_id = projects.id
        )
      ), 0) AS access,
    subscriptions.plan, subscriptions.since AS plan_since, subscriptions.overflow,
    EXISTS (SELECT 1 FROM budgets WHERE subject IN (keys.id, keys.created_by)) AS limited
  FROM keys
  JOIN projects ON projects.id = keys.project_id
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN members ON members.id = keys.created_by
  LEFT JOIN subscriptions ON subscriptions.org_id = projects.org_id
  WHERE keys.hash = ? AND keys.revoked_at IS NULL`

export interface KeyOptions {
  /** Monotonic, in milliseconds. */
  readonly clock?: () => number
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
}

export class SqliteKeys implements KeyStore {
  readonly #find: Statement<[string], KeyRow>
  readonly #spent: Statement<[string], Money>
  readonly #budgets: BudgetReader
  readonly #subscription: Statement<[string], SubscriptionRow>
  readonly #allDiscounts: Statement<[], DiscountRow>
  readonly #dataVersion: Statement<[], number>
  readonly #clock: () => number
  readonly #now: () => number
  readonly #known = new LRUCache<string, Principal>({ max: MAX_KEYS })
  /** Apart from the known, so that guessing does not push them out. */
  readonly #unknown = new LRUCache<string, true>({ max: MAX_KEYS })
  #discounts: readonly DiscountRow[] | undefined
  #version: number | undefined
  #polledAt = Number.NEGATIVE_INFINITY
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(db: Sqlite, { clock = () => performance.now(), now = Date.now }: KeyOptions = {}) {
    this.#find = db.prepare(KEY)
    this.#budgets = new BudgetReader(db)
    this.#subscription = readSubscription(db)
    // The most specific first: of this organization, of this model, of this provider.
    this.#allDiscounts = db.prepare(`
      SELECT org_id, provider, model, millionths FROM discounts ORDER BY org_id DESC, model DESC, provider DESC`)
    this.#spent = db
      .prepare<[string], Money>('SELECT coalesce(sum(cost), 0) FROM usage_hourly WHERE key_id = ?')
      .pluck()
      .safeIntegers()
    this.#dataVersion = db.prepare<[], number>('PRAGMA data_version').pluck()
    this.#clock = clock
    this.#now = now
  }

  find(hash: string): Principal | undefined {
    this.#poll()
    const known = this.#known.get(hash)
    if (known || this.#unknown.get(hash)) return known
    const principal = this.#read(hash)
    if (principal) this.#known.set(hash, principal)
    else this.#unknown.set(hash, true)
    return principal
  }

  async spent(keyId: string): Promise<Money> {
    return this.#spent.get(keyId) ?? 0n
  }

  async status({ keyId, orgId, member }: Principal): Promise<KeyStatus> {
    const now = this.#now()
    return {
      spent: this.#spent.get(keyId) ?? 0n,
      budgets: this.#budgets.of(keyId, member?.id ?? null, now),
      plan: planState(this.#subscription.get(orgId), now),
    }
  }

  /** Forgets all; for changes of this process, which `data_version` does not count. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
    this.#discounts = undefined
  }

  #read(hash: string): Principal | undefined {
    try {
      const row = this.#find.get(hash)
      if (!row) return undefined
      const budgets = row.limited ? this.#budgets.of(row.id, row.member_id, this.#now()) : []
      // There are few of them, and a look at the table for each key would cost more.
      this.#discounts ??= this.#allDiscounts.all()
      const discounts = this.#discounts.filter(({ org_id }) => org_id === '' || org_id === row.org_id)
      return principalOf(row, budgets, discounts.map(discountOf))
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
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

const principalOf = (row: KeyRow, budgets: Principal['budgets'], discounts: readonly Discount[]): Principal => ({
  keyId: row.id,
  keyName: row.name,
  kind: row.kind,
  projectId: row.project_id,
  orgId: row.org_id,
  orgName: row.org_name,
  account: row.account,
  mode: row.mode,
  archived: row.archived_at !== null,
  expiresAt: row.expires_at ?? undefined,
  // Field notes section 4: off for organizations on a coding plan.
  cacheTtlMs: row.plan === null ? (row.cache_ttl_ms ?? undefined) : undefined,
  member: row.member_id !== null && row.role !== null ? { id: row.member_id, role: row.role } : undefined,
  access: row.access !== 0,
  budgets: budgets.map(({ id, of, limit, period, zone }) => ({ id, of, limit, period, zone })),
  plan: row.plan === null ? undefined : { plan: row.plan, since: row.plan_since, overflow: row.overflow !== 0 },
  discounts,
  retains: row.retains !== 0,
  since: row.since,
})

const discountOf = ({ provider, model, millionths }: DiscountRow): Discount => ({
  provider: provider || null,
  model: model || null,
  millionths,
})
