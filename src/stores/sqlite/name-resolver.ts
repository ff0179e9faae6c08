/** Resolves organizations, projects, members and keys by id or name. */
import type { Statement } from 'better-sqlite3'
import { chosen, MAX_NAMED, type Named, noSuchKey, showNamed, showProject, unknownName } from '../rules/names.ts'
import type { Sqlite } from './open.ts'

/** A project, with its organization's id and name. */
export interface ProjectPlace extends Named {
  readonly org_id: string
  readonly organization: string
}
interface Wanted {
  wanted: string
}
interface WantedOf extends Wanted {
  org: string
}

const PROJECTS = `
  SELECT projects.id, projects.name, org_id, organizations.name AS organization
  FROM projects JOIN organizations ON organizations.id = projects.org_id`

/** Each method returns the record, or throws a 404 that lists existing ones. */
export class NameResolver {
  readonly #organizations: Statement<[], Named>
  readonly #organizationsOf: Statement<Wanted, Named>
  readonly #projects: Statement<[], ProjectPlace>
  readonly #projectsOf: Statement<Wanted, ProjectPlace>
  readonly #projectsWithin: Statement<[string], ProjectPlace>
  readonly #projectsOfWithin: Statement<WantedOf, ProjectPlace>
  readonly #members: Statement<[string], Named>
  readonly #membersOf: Statement<WantedOf, Named>
  readonly #keys: Statement<[string], string>

  constructor(db: Sqlite) {
    this.#organizations = db.prepare(`SELECT id, name FROM organizations ORDER BY created_at, rowid LIMIT ${MAX_NAMED}`)
    this.#organizationsOf = db.prepare('SELECT id, name FROM organizations WHERE @wanted IN (id, name)')
    this.#projects = db.prepare(`${PROJECTS} ORDER BY projects.created_at, projects.rowid LIMIT ${MAX_NAMED}`)
    const called = "@wanted IN (projects.id, projects.name, organizations.name || '/' || projects.name)"
    this.#projectsOf = db.prepare(`${PROJECTS} WHERE ${called}`)
    this.#projectsWithin = db.prepare(
      `${PROJECTS} WHERE org_id = ? ORDER BY projects.created_at, projects.rowid LIMIT ${MAX_NAMED}`,
    )
    this.#projectsOfWithin = db.prepare(`${PROJECTS} WHERE org_id = @org AND ${called}`)
    const members = 'SELECT id, email AS name FROM members WHERE removed_at IS NULL'
    this.#members = db.prepare(`${members} AND org_id = ? ORDER BY rowid LIMIT ${MAX_NAMED}`)
    this.#membersOf = db.prepare(`${members} AND org_id = @org AND @wanted IN (id, email)`)
    this.#keys = db.prepare<[string], string>('SELECT id FROM keys WHERE id = ?').pluck()
  }

  organization(wanted: string): Named {
    return oneOf(
      'organization',
      wanted,
      this.#organizationsOf.all({ wanted }),
      () => this.#organizations.all(),
      showNamed,
    )
  }

  /** Also accepts `organization/project`. */
  project(wanted: string): ProjectPlace {
    return oneOf('project', wanted, this.#projectsOf.all({ wanted }), () => this.#projects.all(), showProject)
  }

  /** Looks only in this organization. */
  projectOf(org: string, wanted: string): ProjectPlace {
    const found = this.#projectsOfWithin.all({ org, wanted })
    return oneOf('project', wanted, found, () => this.#projectsWithin.all(org), showProject)
  }

  key(id: string): string {
    const found = this.#keys.get(id)
    if (found === undefined) throw noSuchKey(id)
    return found
  }

  /** Excludes members who have left. */
  member(org: string, wanted: string): Named {
    return oneOf('member', wanted, this.#membersOf.all({ org, wanted }), () => this.#members.all(org), showNamed)
  }
}

function oneOf<T extends Named>(
  what: string,
  wanted: string,
  found: readonly T[],
  all: () => readonly T[],
  show: (one: T) => string,
): T {
  const one = chosen(what, wanted, found, show)
  if (one) return one
  throw unknownName(what, wanted, all(), show)
}
