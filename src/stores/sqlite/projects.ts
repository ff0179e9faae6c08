/** Operators' changes of projects. */
import type { Statement } from 'better-sqlite3'
import type { Compliance } from '../../core/policy.ts'
import type { Actor, Page, ProjectChanges, ProjectMode, ProjectRecord, ProjectStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkResponses, nameTaken, ttlOf } from '../rules/accounts.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'

interface ProjectRow {
  id: string
  org_id: string
  name: string
  organization: string
  mode: ProjectMode
  cache_ttl_ms: number | null
  pass_parameters: number
  cache_prompts: number
  responses_ms: number | null
  compliance: string | null
  archived_at: number | null
  created_at: number
}

const ROWS = `
  SELECT projects.id, projects.org_id, projects.name, organizations.name AS organization, mode, cache_ttl_ms, pass_parameters,
    cache_prompts, responses_ms, archived_at, projects.created_at, compliance
  FROM projects JOIN organizations ON organizations.id = projects.org_id
    LEFT JOIN policies ON policies.org_id = projects.org_id`

/** `ProjectStore` over `projects`; names are unique within an organization. */
export class SqliteProjects implements ProjectStore {
  readonly #changes: AuditedTransaction
  readonly #add: Statement
  readonly #update: Statement
  readonly #named: Statement<[string, string], number>
  readonly #byId: Statement<[string], ProjectRow>
  readonly #list: Statement<PageRow & { org: string | null }, ProjectRow>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#add = db.prepare(`
      INSERT INTO projects (id, org_id, name, mode, cache_ttl_ms, pass_parameters, cache_prompts, responses_ms,
        archived_at, created_at)
      VALUES (@id, @org, @name, @mode, @cacheTtlMs, @passParameters, @cachePrompts, @responsesMs, @archivedAt, @now)`)
    this.#update = db.prepare(`
      UPDATE projects SET name = @name, mode = @mode, cache_ttl_ms = @cacheTtlMs, pass_parameters = @passParameters,
        cache_prompts = @cachePrompts, responses_ms = @responsesMs, archived_at = @archivedAt
      WHERE id = @id`)
    this.#named = db
      .prepare<[string, string], number>('SELECT count(*) FROM projects WHERE org_id = ? AND name = ?')
      .pluck()
    this.#byId = db.prepare(`${ROWS} WHERE projects.id = ?`)
    this.#list = db.prepare(`
      ${ROWS}
      WHERE (@org IS NULL OR projects.org_id = @org)
        AND projects.rowid > CASE WHEN @after IS NULL THEN 0 ELSE (SELECT rowid FROM projects WHERE id = @after) END
      ORDER BY projects.rowid LIMIT @limit`)
  }

  create(input: Parameters<ProjectStore['create']>[0], actor: Actor): Promise<ProjectRecord> {
    return this.#changes.run(() => {
      const { now, directory } = this.#changes
      const org = directory.organization(input.organization).id
      const { name, mode = 'credits', archived = false, passesParameters = false, cachesPrompts = false } = input
      const { responsesMs = null } = input
      const cacheTtlMs = ttlOf(input.cacheTtlMs, null)
      const passParameters = Number(passesParameters)
      const cachePrompts = Number(cachesPrompts)
      this.#refuseTaken(org, name)
      const id = shortId()
      const archivedAt = archived ? now() : null
      const settings = { cacheTtlMs, passParameters, cachePrompts, responsesMs, archivedAt }
      this.#add.run({ id, org, name, mode, ...settings, now: now() })
      const made = this.#byId.get(id)!
      checkResponses(responsesMs, complianceOf(made))
      const became = recordOf(made)
      this.#changes.note({ actor, action: 'projects.create', organization: org, subject: id, was: null, became })
      return became
    })
  }

  async list(organization?: string, page?: Page): Promise<ProjectRecord[]> {
    const org = organization === undefined ? null : this.#changes.directory.organization(organization).id
    return this.#list.all({ org, ...pageOf(page) }).map(recordOf)
  }

  update(project: string, changes: ProjectChanges, actor: Actor): Promise<ProjectRecord> {
    return this.#changes.run(() => {
      const { id } = this.#changes.directory.project(project)
      const row = this.#byId.get(id)!
      const { name = row.name, mode = row.mode, archived, passesParameters = row.pass_parameters !== 0 } = changes
      const cachePrompts = Number(changes.cachesPrompts ?? row.cache_prompts !== 0)
      const cacheTtlMs = ttlOf(changes.cacheTtlMs, row.cache_ttl_ms)
      const { responsesMs = row.responses_ms } = changes
      if (changes.responsesMs != null) checkResponses(changes.responsesMs, complianceOf(row))
      if (name !== row.name) this.#refuseTaken(row.org_id, name)
      const since = row.archived_at ?? this.#changes.now()
      const archivedAt = archived === undefined ? row.archived_at : archived ? since : null
      const passParameters = Number(passesParameters)
      this.#update.run({ id, name, mode, cacheTtlMs, passParameters, cachePrompts, responsesMs, archivedAt })
      const [was, became] = [recordOf(row), recordOf(this.#byId.get(id)!)]
      this.#changes.note({ actor, action: 'projects.update', organization: row.org_id, subject: id, was, became })
      return became
    })
  }

  #refuseTaken(org: string, name: string): void {
    if (this.#named.get(org, name) !== 0) throw nameTaken.project(name)
  }
}

const complianceOf = ({ compliance }: ProjectRow): Compliance | null =>
  compliance === null ? null : JSON.parse(compliance)

const recordOf = (row: ProjectRow): ProjectRecord => ({
  id: row.id,
  name: row.name,
  organization: row.organization,
  mode: row.mode,
  cacheTtlMs: row.cache_ttl_ms,
  passesParameters: row.pass_parameters !== 0,
  cachesPrompts: row.cache_prompts !== 0,
  responsesMs: row.responses_ms,
  status: row.archived_at === null ? 'active' : 'archived',
  createdAt: new Date(row.created_at).toISOString(),
})
