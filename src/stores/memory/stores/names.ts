/** Resolves organizations, projects, members and keys in memory by id or name. */
import type { NameStore } from '../../../core/ports.ts'
import {
  chosen,
  MAX_NAMED,
  type Named,
  type NamedProject,
  noSuchKey,
  showNamed,
  showProject,
} from '../../rules/names.ts'
import type { Tables } from './tables.ts'

/** A project, its organization's name and its organization's id. */
export interface ProjectPlace extends NamedProject {
  readonly orgId: string
}

/** Each method returns the record, or throws a 404 that lists existing ones. */
export class Names implements NameStore {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  findOrganization(wanted: string): Named {
    return this.#chosen('organization', wanted, this.#tables.organizations.all(), isCalled, showNamed)
  }

  findProject(wanted: string): ProjectPlace {
    return this.#chosen('project', wanted, this.#projects(), isProject, showProject)
  }

  /** Looks only in this organization. */
  findProjectOf(orgId: string, wanted: string): ProjectPlace {
    const projects = this.#projects().filter(project => project.orgId === orgId)
    return this.#chosen('project', wanted, projects, isProject, showProject)
  }

  /** Excludes members who have left. */
  findMember(orgId: string, wanted: string): Named {
    const members = this.#tables.members
      .filter(member => member.orgId === orgId && member.removedAt === null)
      .map(({ id, email }) => ({ id, name: email }))
    return this.#chosen('member', wanted, members, isCalled, showNamed)
  }

  findKey(id: string): string {
    if (!this.#tables.keys.get(id)) throw noSuchKey(id)
    return id
  }

  async organization(wanted: string): Promise<string> {
    return this.findOrganization(wanted).id
  }

  async project(wanted: string): Promise<string> {
    return this.findProject(wanted).id
  }

  async key(id: string): Promise<string> {
    return this.findKey(id)
  }

  #projects(): ProjectPlace[] {
    return this.#tables.projects.all().map(({ id, name, orgId }) => {
      return { id, name, orgId, organization: this.#tables.nameOf(orgId) }
    })
  }

  #chosen<T extends Named>(
    what: string,
    wanted: string,
    all: readonly T[],
    is: (one: T, wanted: string) => boolean,
    show: (one: T) => string,
  ): T {
    const found = all.filter(one => is(one, wanted))
    return chosen(what, wanted, found, () => all.slice(0, MAX_NAMED), show)
  }
}

const isCalled = ({ id, name }: Named, wanted: string): boolean => wanted === id || wanted === name
const isProject = (project: NamedProject, wanted: string): boolean =>
  isCalled(project, wanted) || wanted === `${project.organization}/${project.name}`
