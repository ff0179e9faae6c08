/** Organizations and projects in memory. */
import type { OrganizationRecord, OrganizationStore, ProjectRecord, ProjectStore } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { checkResponses, nameTaken, ttlOf } from '../../rules/accounts.ts'
import type { Names } from './names.ts'
import type { Organization, Project } from './rows.ts'
import { behind, iso, type Tables } from './tables.ts'

/** Organizations; names are unique among their names and ids. */
export function organizationStore(tables: Tables, names: Names): OrganizationStore {
  const { organizations, now } = tables
  const record = ({ createdAt, ...one }: Organization): OrganizationRecord => {
    return { ...one, plan: tables.plans.get(one.id)?.plan ?? null, createdAt: iso(createdAt) }
  }
  const refuseTaken = (name: string) => {
    if (organizations.all().some(one => one.name === name || one.id === name)) throw nameTaken.organization(name)
  }
  return {
    create: ({ name, account = 'prepaid', retains = false }, actor) =>
      tables.run(() => {
        refuseTaken(name)
        const id = shortId()
        const made: Organization = { id, name, account, retains, createdAt: now() }
        organizations.set(id, made)
        const became = record(made)
        tables.note({ actor, action: 'orgs.create', organization: id, subject: id, was: null, became })
        return became
      }),
    list: async page => behind(organizations.all(), page).slice(0, page?.limit).map(record),
    update: (organization, changes, actor) =>
      tables.run(() => {
        const old = organizations.get(names.findOrganization(organization).id)!
        const { id, name = old.name, account = old.account, retains = old.retains } = { ...changes, id: old.id }
        if (name !== old.name) refuseTaken(name)
        const changed: Organization = { ...old, name, account, retains }
        const was = record(old)
        organizations.set(id, changed)
        const became = record(changed)
        tables.note({ actor, action: 'orgs.update', organization: id, subject: id, was, became })
        return became
      }),
  }
}

/** Projects; names are unique within an organization. */
export function projectStore(tables: Tables, names: Names): ProjectStore {
  const { projects, now } = tables
  const record = ({ orgId, archivedAt, createdAt, ...one }: Project): ProjectRecord => ({
    ...one,
    organization: tables.nameOf(orgId),
    status: archivedAt === null ? 'active' : 'archived',
    createdAt: iso(createdAt),
  })
  const complianceOf = (orgId: string) => tables.policies.get(orgId)?.compliance ?? null
  const refuseTaken = (orgId: string, name: string) => {
    if (projects.all().some(one => one.orgId === orgId && one.name === name)) throw nameTaken.project(name)
  }
  return {
    create: (input, actor) =>
      tables.run(() => {
        const orgId = names.findOrganization(input.organization).id
        const { name, mode = 'credits', archived = false, passesParameters = false, cachesPrompts = false } = input
        const { responsesMs = null } = input
        checkResponses(responsesMs, complianceOf(orgId))
        refuseTaken(orgId, name)
        const id = shortId()
        const [cacheTtlMs, archivedAt] = [ttlOf(input.cacheTtlMs, null), archived ? now() : null]
        const made: Project = {
          id,
          orgId,
          name,
          mode,
          cacheTtlMs,
          passesParameters,
          cachesPrompts,
          responsesMs,
          archivedAt,
          createdAt: now(),
        }
        projects.set(id, made)
        const became = record(made)
        tables.note({ actor, action: 'projects.create', organization: orgId, subject: id, was: null, became })
        return became
      }),
    async list(organization, page) {
      const orgId = organization === undefined ? undefined : names.findOrganization(organization).id
      const listed = behind(projects.all(), page).filter(one => orgId === undefined || one.orgId === orgId)
      return listed.slice(0, page?.limit).map(record)
    },
    update: (project, changes, actor) =>
      tables.run(() => {
        const old = projects.get(names.findProject(project).id)!
        const { id, orgId } = old
        const { name = old.name, mode = old.mode, archived, passesParameters = old.passesParameters } = changes
        const { cachesPrompts = old.cachesPrompts, responsesMs = old.responsesMs } = changes
        if (changes.responsesMs != null) checkResponses(changes.responsesMs, complianceOf(orgId))
        if (name !== old.name) refuseTaken(orgId, name)
        const cacheTtlMs = ttlOf(changes.cacheTtlMs, old.cacheTtlMs)
        const since = old.archivedAt ?? now()
        const archivedAt = archived === undefined ? old.archivedAt : archived ? since : null
        const settings = { cacheTtlMs, passesParameters, cachesPrompts, responsesMs, archivedAt }
        const changed: Project = { ...old, name, mode, ...settings }
        projects.set(id, changed)
        const [was, became] = [record(old), record(changed)]
        tables.note({ actor, action: 'projects.update', organization: orgId, subject: id, was, became })
        return became
      }),
  }
}
