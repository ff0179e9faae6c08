/** Finds the principal of a key: from memory, unless somebody has changed the database since. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Discount, KeyStatus, KeyStore, Principal, ProjectMode, Role, Subscription } from '../../core/ports.ts'
import { BudgetReader, budgetOf } from './budgets.ts'
import type { Sqlite } from './open.ts'
import { planState, readSubscription, type SubscriptionRow } from './subscriptions.ts'

const MAX_KEYS = 10_000
/** How long a change of another process may go unseen: with a request's own time it is less than a second. */
const POLL_MS = 500
/** How long known keys are served while the database cannot be read. */
const STALE_MS = 300_000

interface KeyRow {
  id: string
  parent_id: string | null
  models: string | null
  name: string
  kind: Principal['kind']
  project_id: string
  expires_at: number | null
  created_by: string | null
  member_id: string | null
  role: Role | null
  access: number
  limited: number
}
interface ProjectRow {
  org_id: string
  org_name: string
  account: Principal['account']
  mode: ProjectMode
  archived_at: number | null
  cache_ttl_ms: number | null
  plan: Subscription['plan'] | null
  plan_since: number
  overflow: number
  retains: number
  since: number
}
/** What all keys of a project share. */
type ProjectFacts = Pick<
  Principal,
  'orgId' | 'orgName' | 'account' | 'mode' | 'archived' | 'cacheTtlMs' | 'plan' | 'discounts' | 'retains' | 'since'
>
interface DiscountRow {
  /** '' is every organization. */
  org_id: string
  provider: string
  model: string
  millionths: number
}

/**
 * Owners and admins have access to every project. A session ends with the key that began it.
 * The casts: of a query with joins, SQLite 3.54 makes a new plan for each value of a bare parameter.
 */
const KEY = `
  SELECT keys.id, keys.parent_id, keys.models, keys.name, keys.kind, keys.expires_at, keys.project_id, keys.created_by,
    members.id AS member_id, members.role,
    members.removed_at IS NULL AND (
      members.all_projects = 1 OR members.role <> 'developer' OR EXISTS (
        SELECT 1 FROM member_projects WHERE member_id = members.id AND project_id = keys.project_id
      )
    ) AS access,
    EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.created_by)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.parent_id) AS limited
  FROM keys
  LEFT JOIN keys AS parents ON parents.id = keys.parent_id
  LEFT JOIN members ON members.id = keys.created_by
    AND members.org_id = (SELECT org_id FROM projects WHERE projects.id = keys.project_id)
  WHERE keys.hash = CAST(? AS TEXT) AND keys.revoked_at IS NULL AND parents.revoked_at IS NULL`

const PROJECT = `
  SELECT projects.org_id, projects.archived_at, projects.cache_ttl_ms, projects.mode,
    organizations.name AS org_name, organizations.account, organizations.retains, organizations.created_at AS since,
    subscriptions.plan, subscriptions.since AS plan_since, subscriptions.overflow
  FROM projects
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN subscriptions ON subscriptions.org_id = projects.org_id
  WHERE projects.id = CAST(? AS TEXT)`

export interface KeyOptions {
  /** Monotonic, in milliseconds. */
  readonly clock?: () => number
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
}

export class SqliteKeys implements KeyStore {
  readonly #find: Statement<[string], KeyRow>
  readonly #project: Statement<[string], ProjectRow>
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
  readonly #projects = new LRUCache<string, ProjectFacts>({ max: MAX_KEYS })
  #discounts: readonly DiscountRow[] | undefined
  #version: number | undefined
  #polledAt = Number.NEGATIVE_INFINITY
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(db: Sqlite, { clock = () => performance.now(), now = Date.now }: KeyOptions = {}) {
    this.#find = db.prepare(KEY)
    this.#project = db.prepare(PROJECT)
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
      budgets: this.#budgets.of([keyId, member?.id ?? null], now),
      plan: planState(this.#subscription.get(orgId), now),
    }
  }

  /** Forgets all; for changes of this process, which `data_version` does not count. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
    this.#projects.clear()
    this.#discounts = undefined
  }

  #read(hash: string): Principal | undefined {
    try {
      const row = this.#find.get(hash)
      if (!row) return undefined
      const budgets = row.limited ? this.#budgets.of([row.id, row.parent_id, row.member_id], this.#now()) : []
      return principalOf(row, budgets, this.#factsOf(row.project_id))
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
  }

  #factsOf(projectId: string): ProjectFacts {
    let facts = this.#projects.get(projectId)
    if (!facts) {
      const row = this.#project.get(projectId)!
      // There are few of them, and a look at the table for each project would cost more.
      this.#discounts ??= this.#allDiscounts.all()
      const discounts = this.#discounts.filter(({ org_id }) => org_id === '' || org_id === row.org_id)
      facts = factsOf(row, discounts.map(discountOf))
      this.#projects.set(projectId, facts)
    }
    return facts
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

const principalOf = (row: KeyRow, budgets: Principal['budgets'], project: ProjectFacts): Principal => ({
  keyId: row.parent_id ?? row.id,
  keyName: row.name,
  kind: row.kind,
  projectId: row.project_id,
  orgId: project.orgId,
  orgName: project.orgName,
  account: project.account,
  mode: project.mode,
  archived: project.archived,
  expiresAt: row.expires_at ?? undefined,
  cacheTtlMs: project.cacheTtlMs,
  member: row.member_id !== null && row.role !== null ? { id: row.member_id, role: row.role } : undefined,
  access: row.created_by === null || (row.member_id !== null && row.access !== 0),
  session: row.parent_id === null ? undefined : { id: row.id, models: listOf(row.models) },
  budgets: budgets.map(budgetOf),
  plan: project.plan,
  discounts: project.discounts,
  retains: project.retains,
  since: project.since,
})

const factsOf = (row: ProjectRow, discounts: readonly Discount[]): ProjectFacts => ({
  orgId: row.org_id,
  orgName: row.org_name,
  account: row.account,
  mode: row.mode,
  archived: row.archived_at !== null,
  // Field notes section 4: off for organizations on a coding plan.
  cacheTtlMs: row.plan === null ? (row.cache_ttl_ms ?? undefined) : undefined,
  plan: row.plan === null ? undefined : { plan: row.plan, since: row.plan_since, overflow: row.overflow !== 0 },
  discounts,
  retains: row.retains !== 0,
  since: row.since,
})

const listOf = (text: string | null): string[] | undefined => (text === null ? undefined : JSON.parse(text))

const discountOf = ({ provider, model, millionths }: DiscountRow): Discount => ({
  provider: provider || null,
  model: model || null,
  millionths,
})
