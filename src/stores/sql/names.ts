/** Resolves organizations, projects, members and keys by id or name. */
import type { NameStore } from '../../core/ports.ts'
import { chosen, MAX_LISTED_NAMES, type Named, noSuchKey, showNamed, showProject, unknownName } from '../rules/names.ts'
import { first, type Sql, type SqlValue } from './sql.ts'

/** A project, with its organization's id and name. */
export interface ProjectPlace extends Named {
  readonly org_id: string
  readonly organization: string
}

const PROJECTS = `
  SELECT projects.id, projects.name, org_id, organizations.name AS organization
  FROM projects JOIN organizations ON organizations.id = projects.org_id`
const CALLED = "CAST($1 AS text) IN (projects.id, projects.name, organizations.name || '/' || projects.name)"
const MEMBERS = 'SELECT id, email AS name FROM members WHERE removed_at IS NULL AND org_id = $1'

const organizations = {
  found: 'SELECT id, name FROM organizations WHERE CAST($1 AS text) IN (id, name)',
  all: `SELECT id, name FROM organizations ORDER BY created_at, rowid LIMIT ${MAX_LISTED_NAMES}`,
}
const projects = {
  found: `${PROJECTS} WHERE ${CALLED}`,
  all: `${PROJECTS} ORDER BY projects.created_at, projects.rowid LIMIT ${MAX_LISTED_NAMES}`,
}
const projectsWithin = {
  found: `${PROJECTS} WHERE ${CALLED} AND org_id = $2`,
  all: `${PROJECTS} WHERE org_id = $1 ORDER BY projects.created_at, projects.rowid LIMIT ${MAX_LISTED_NAMES}`,
}
const members = {
  found: `${MEMBERS} AND CAST($2 AS text) IN (id, email)`,
  all: `${MEMBERS} ORDER BY rowid LIMIT ${MAX_LISTED_NAMES}`,
}

/** Each method returns the record, or rejects with a 404 that lists existing ones. */
export class Names {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async organization(wanted: string): Promise<Named> {
    const found = await this.#sql.query<Named>(organizations.found, [wanted])
    return (
      chosen('organization', wanted, found, showNamed) ??
      this.#refuse('organization', wanted, showNamed, organizations.all)
    )
  }

  /** Returns the organization's id; null where none is given. */
  async organizationId(wanted: string | undefined): Promise<string | null> {
    return wanted === undefined ? null : (await this.organization(wanted)).id
  }

  /** Also accepts `organization/project`. */
  async project(wanted: string): Promise<ProjectPlace> {
    const found = await this.#sql.query<ProjectPlace>(projects.found, [wanted])
    return chosen('project', wanted, found, showProject) ?? this.#refuse('project', wanted, showProject, projects.all)
  }

  /** Looks only in this organization. */
  async projectOf(org: string, wanted: string): Promise<ProjectPlace> {
    const found = await this.#sql.query<ProjectPlace>(projectsWithin.found, [wanted, org])
    return (
      chosen('project', wanted, found, showProject) ??
      this.#refuse('project', wanted, showProject, projectsWithin.all, [org])
    )
  }

  async key(id: string): Promise<string> {
    const found = await first<{ id: string }>(this.#sql, 'SELECT id FROM keys WHERE id = $1', [id])
    if (!found) throw noSuchKey(id)
    return found.id
  }

  /** Excludes members who have left. */
  async member(org: string, wanted: string): Promise<Named> {
    const found = await this.#sql.query<Named>(members.found, [org, wanted])
    return chosen('member', wanted, found, showNamed) ?? this.#refuse('member', wanted, showNamed, members.all, [org])
  }

  async #refuse<T extends Named>(
    what: string,
    wanted: string,
    show: (one: T) => string,
    all: string,
    values: readonly SqlValue[] = [],
  ): Promise<never> {
    throw unknownName(what, wanted, await this.#sql.query<T>(all, values), show)
  }
}

/** The `NameStore` of names. */
export const nameStore = (names: Names): NameStore => ({
  organization: async wanted => (await names.organization(wanted)).id,
  project: async wanted => (await names.project(wanted)).id,
  key: id => names.key(id),
})
