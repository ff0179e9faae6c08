/** Reads the facts that all keys of a project share. Cached until cleared. */
import { LRUCache } from 'lru-cache'
import type { Discount, Principal, ProjectMode, Subscription } from '../../core/ports.ts'
import { upTo } from '../../lib/up-to.ts'
import { cacheTtl } from '../rules/accounts.ts'
import { type Flag, first, type Sql } from './sql.ts'

const MAX_PROJECTS = 10_000

interface ProjectRow {
  org_id: string
  archived_at: bigint | null
  cache_ttl_ms: bigint | null
  mode: ProjectMode
  pass_parameters: Flag
  cache_prompts: Flag
  responses_ms: bigint | null
  content_ms: bigint | null
  organization: string
  account: Principal['account']
  retains: Flag
  created_at: bigint
  plan: Subscription['plan'] | null
  since: bigint | null
  overflow: Flag | null
}
interface DiscountRow {
  /** '' is every organization. */
  org_id: string
  provider: string
  model: string
  millionths: bigint
}
type ProjectFacts = ReturnType<typeof factsOf>

const PROJECT = `
  SELECT projects.org_id, projects.archived_at, projects.cache_ttl_ms, projects.mode,
    projects.pass_parameters, projects.cache_prompts, projects.responses_ms, projects.content_ms,
    organizations.name AS organization, organizations.account, organizations.retains, organizations.created_at,
    subscriptions.plan, subscriptions.since, subscriptions.overflow
  FROM projects
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN subscriptions ON subscriptions.org_id = projects.org_id
  WHERE projects.id = CAST($1 AS text)`
/** The most specific first: of this organization, of this model, of this provider. */
const DISCOUNTS = `
  SELECT org_id, provider, model, millionths FROM discounts ORDER BY org_id DESC, model DESC, provider DESC`

/** Reads the projects of principals; cleared with each change of what keys may do. */
export class ProjectFactsReader {
  #projects = noProjects()
  #discounts: readonly DiscountRow[] | undefined

  /** Reads a project that exists. */
  async read(sql: Sql, id: string): Promise<ProjectFacts> {
    const projects = this.#projects
    const known = projects.get(id)
    if (known) return known
    const row = (await first<ProjectRow>(sql, PROJECT, [id]))!
    const discounts = (await this.#allDiscounts(sql)).filter(({ org_id }) => org_id === '' || org_id === row.org_id)
    const facts = factsOf(row, discounts.map(discountOf))
    // In those that were current when the reading began, since they may have been cleared meanwhile.
    projects.set(id, facts)
    return facts
  }

  /** Forgets all. */
  clear(): void {
    this.#projects = noProjects()
    this.#discounts = undefined
  }

  /** There are few of them, and a look at the table for each project would cost more. */
  async #allDiscounts(sql: Sql): Promise<readonly DiscountRow[]> {
    if (this.#discounts) return this.#discounts
    const projects = this.#projects
    const read = await sql.query<DiscountRow>(DISCOUNTS)
    if (projects === this.#projects) this.#discounts = read
    return read
  }
}

const noProjects = () => new LRUCache<string, ProjectFacts>(upTo(MAX_PROJECTS))

/** The part of a `Principal` that is its project's, and that of the organization. */
const factsOf = (row: ProjectRow, discounts: readonly Discount[]) => ({
  orgId: row.org_id,
  orgName: row.organization,
  account: row.account,
  mode: row.mode,
  archived: row.archived_at !== null,
  cacheTtlMs: cacheTtl(row.cache_ttl_ms === null ? null : Number(row.cache_ttl_ms), row.plan !== null),
  passesParameters: Boolean(row.pass_parameters),
  cachesPrompts: Boolean(row.cache_prompts),
  responsesMs: row.responses_ms === null ? undefined : Number(row.responses_ms),
  contentMs: row.content_ms === null ? undefined : Number(row.content_ms),
  plan: row.plan === null ? undefined : { plan: row.plan, since: Number(row.since), overflow: Boolean(row.overflow) },
  discounts,
  retains: Boolean(row.retains),
  since: Number(row.created_at),
})

const discountOf = ({ provider, model, millionths }: DiscountRow): Discount => ({
  provider: provider || null,
  model: model || null,
  millionths: Number(millionths),
})
