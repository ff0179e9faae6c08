/** What all keys of a project share: from memory, until it is cleared. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { Discount, Principal, ProjectMode, Subscription } from '../../core/ports.ts'
import { cacheTtl } from '../rules/accounts.ts'
import type { Sqlite } from './open.ts'

const MAX_PROJECTS = 10_000

/** Rows of many columns are lists here, in the order of the query: SQLite's driver takes half as long for them. */
type ProjectRow = [
  orgId: string,
  archivedAt: number | null,
  cacheTtlMs: number | null,
  mode: ProjectMode,
  passParameters: number,
  cachePrompts: number,
  responsesMs: number | null,
  orgName: string,
  account: Principal['account'],
  retains: number,
  since: number,
  plan: Subscription['plan'] | null,
  planSince: number,
  overflow: number,
]
type ProjectFacts = Pick<
  Principal,
  | 'orgId'
  | 'orgName'
  | 'account'
  | 'mode'
  | 'archived'
  | 'cacheTtlMs'
  | 'passesParameters'
  | 'cachesPrompts'
  | 'responsesMs'
  | 'plan'
  | 'discounts'
  | 'retains'
  | 'since'
>
interface DiscountRow {
  /** '' is every organization. */
  org_id: string
  provider: string
  model: string
  millionths: number
}

const PROJECT = `
  SELECT projects.org_id, projects.archived_at, projects.cache_ttl_ms, projects.mode,
    projects.pass_parameters, projects.cache_prompts, projects.responses_ms,
    organizations.name, organizations.account, organizations.retains, organizations.created_at,
    subscriptions.plan, subscriptions.since, subscriptions.overflow
  FROM projects
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN subscriptions ON subscriptions.org_id = projects.org_id
  WHERE projects.id = CAST(? AS TEXT)`

/** Reads the projects of principals; cleared with each change of what keys may do. */
export class ProjectReader {
  readonly #project: Statement<[string], ProjectRow>
  readonly #allDiscounts: Statement<[], DiscountRow>
  readonly #projects = new LRUCache<string, ProjectFacts>({ max: MAX_PROJECTS })
  #discounts: readonly DiscountRow[] | undefined

  constructor(db: Sqlite) {
    this.#project = db.prepare<[string], ProjectRow>(PROJECT).raw()
    // The most specific first: of this organization, of this model, of this provider.
    this.#allDiscounts = db.prepare(`
      SELECT org_id, provider, model, millionths FROM discounts ORDER BY org_id DESC, model DESC, provider DESC`)
  }

  /** Of a project that exists. */
  get(id: string): ProjectFacts {
    let facts = this.#projects.get(id)
    if (!facts) {
      const row = this.#project.get(id)!
      const [orgId] = row
      // There are few of them, and a look at the table for each project would cost more.
      this.#discounts ??= this.#allDiscounts.all()
      const discounts = this.#discounts.filter(({ org_id }) => org_id === '' || org_id === orgId)
      facts = factsOf(row, discounts.map(discountOf))
      this.#projects.set(id, facts)
    }
    return facts
  }

  /** Forgets all. */
  clear(): void {
    this.#projects.clear()
    this.#discounts = undefined
  }
}

const factsOf = (row: ProjectRow, discounts: readonly Discount[]): ProjectFacts => {
  const [
    orgId,
    archivedAt,
    cacheTtlMs,
    mode,
    passParameters,
    cachePrompts,
    responsesMs,
    orgName,
    account,
    retains,
    since,
    plan,
    planSince,
    overflow,
  ] = row
  return {
    orgId,
    orgName,
    account,
    mode,
    archived: archivedAt !== null,
    cacheTtlMs: cacheTtl(cacheTtlMs, plan !== null),
    passesParameters: passParameters !== 0,
    cachesPrompts: cachePrompts !== 0,
    responsesMs: responsesMs ?? undefined,
    plan: plan === null ? undefined : { plan, since: planSince, overflow: overflow !== 0 },
    discounts,
    retains: retains !== 0,
    since,
  }
}

const discountOf = ({ provider, model, millionths }: DiscountRow): Discount => ({
  provider: provider || null,
  model: model || null,
  millionths,
})
