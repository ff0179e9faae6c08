/** Operators' changes of projects. */
import type { Compliance } from '../../core/policy.ts'
import type { ProjectMode, ProjectRecord, ProjectStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkResponses, nameTaken, ttlOf } from '../rules/accounts.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { changeLimit, limitsOf } from './limits.ts'
import { changeRates, rateLimitsOf, ratesOf } from './rate-limits.ts'
import { type Flag, first, isAfter, isoOf, numberOf, pageOf, type Sql } from './sql.ts'

interface ProjectRow {
  id: string
  org_id: string
  name: string
  organization: string
  mode: ProjectMode
  cache_ttl_ms: bigint | null
  pass_parameters: Flag
  cache_prompts: Flag
  responses_ms: bigint | null
  content_ms: bigint | null
  compliance: string | null
  archived_at: bigint | null
  created_at: bigint
  rates: string | null
  limited: Flag
}

const ROWS = `
  SELECT projects.id, projects.org_id, projects.name, organizations.name AS organization, mode, cache_ttl_ms, pass_parameters,
    cache_prompts, responses_ms, content_ms, archived_at, projects.created_at, compliance,
    ${ratesOf('projects.id')}, EXISTS (SELECT 1 FROM budgets WHERE subject = projects.id) AS limited
  FROM projects JOIN organizations ON organizations.id = projects.org_id
    LEFT JOIN policies ON policies.org_id = projects.org_id`
const PAGE = `
  ${ROWS}
  WHERE (CAST($1 AS text) IS NULL OR projects.org_id = $1) AND ${isAfter('projects', 2)}
  ORDER BY projects.rowid LIMIT $3`
const INSERT = `
  INSERT INTO projects
    (id, name, mode, cache_ttl_ms, pass_parameters, cache_prompts, responses_ms, content_ms, archived_at, org_id,
      created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
const UPDATE = `
  UPDATE projects SET name = $2, mode = $3, cache_ttl_ms = $4, pass_parameters = $5, cache_prompts = $6,
    responses_ms = $7, content_ms = $8, archived_at = $9
  WHERE id = $1`

/** Makes the `ProjectStore` over `projects`; names are unique within an organization. */
export const sqlProjects = (changes: AuditedTransaction): ProjectStore => ({
  create: (input, actor) =>
    changes.run(async change => {
      const { sql, names, note } = change
      const now = change.now()
      const org = (await names.organization(input.organization)).id
      const { name, mode = 'credits', archived = false, passesParameters = false, cachesPrompts = false } = input
      const { responsesMs = null, contentMs = null } = input
      await refuseTaken(sql, org, name)
      const id = shortId()
      const ttl = ttlOf(input.cacheTtlMs, null)
      const settings = [name, mode, ttl, passesParameters, cachesPrompts, responsesMs, contentMs, archived ? now : null]
      await sql.query(INSERT, [id, ...settings, org, now])
      if (input.limit) await changeLimit(sql, 'project', id, input.limit, now)
      await changeRates(sql, id, input.rates)
      const made = await rowIn(sql, id)
      checkResponses(responsesMs ?? contentMs, complianceOf(made))
      const became = await recordOf(change, made)
      await note({ actor, action: 'projects.create', organization: org, subject: id, was: null, became })
      return became
    }),

  list(organization, page) {
    const { after, limit } = pageOf(page)
    return changes.read(async () => {
      const org = await changes.names.organizationId(organization)
      const rows = await changes.sql.query<ProjectRow>(PAGE, [org, after, limit])
      return Promise.all(rows.map(row => recordOf(changes, row)))
    })
  },

  update: (project, input, actor) =>
    changes.run(async change => {
      const { sql, names, note } = change
      const { id } = await names.project(project)
      const row = await rowIn(sql, id)
      const was = await recordOf(change, row)
      const { name = was.name, mode = was.mode, passesParameters = was.passesParameters } = input
      const { cachesPrompts = was.cachesPrompts, responsesMs = was.responsesMs, archived } = input
      const { contentMs = was.contentMs } = input
      checkResponses(input.responsesMs ?? input.contentMs ?? null, complianceOf(row))
      if (name !== was.name) await refuseTaken(sql, row.org_id, name)
      const since = row.archived_at ?? change.now()
      const archivedAt = archived === undefined ? row.archived_at : archived ? since : null
      const ttl = ttlOf(input.cacheTtlMs, was.cacheTtlMs)
      const settings = [name, mode, ttl, passesParameters, cachesPrompts, responsesMs, contentMs, archivedAt]
      await sql.query(UPDATE, [id, ...settings])
      if (input.limit) await changeLimit(sql, 'project', id, input.limit, change.now())
      await changeRates(sql, id, input.rates)
      const became = await recordOf(change, await rowIn(sql, id))
      await note({ actor, action: 'projects.update', organization: row.org_id, subject: id, was, became })
      return became
    }),
})

const recordOf = async ({ sql, now }: Pick<Change, 'sql' | 'now'>, row: ProjectRow): Promise<ProjectRecord> => ({
  id: row.id,
  name: row.name,
  organization: row.organization,
  mode: row.mode,
  cacheTtlMs: numberOf(row.cache_ttl_ms),
  passesParameters: Boolean(row.pass_parameters),
  cachesPrompts: Boolean(row.cache_prompts),
  responsesMs: numberOf(row.responses_ms),
  contentMs: numberOf(row.content_ms),
  status: row.archived_at === null ? 'active' : 'archived',
  limits: row.limited ? await limitsOf(sql, row.id, now()) : [],
  createdAt: isoOf(row.created_at),
  ...rateLimitsOf(row.rates),
})

async function refuseTaken(sql: Sql, org: string, name: string): Promise<void> {
  const taken = await first(sql, 'SELECT id FROM projects WHERE org_id = $1 AND name = $2', [org, name])
  if (taken) throw nameTaken.project(name)
}

async function rowIn(sql: Sql, id: string): Promise<ProjectRow> {
  const row = await first<ProjectRow>(sql, `${ROWS} WHERE projects.id = $1`, [id])
  return row!
}

const complianceOf = ({ compliance }: ProjectRow): Compliance | null =>
  compliance === null ? null : JSON.parse(compliance)
