/** Members of organizations in memory. */
import type { Actor, MemberChanges, MemberRecord, MemberStore } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { checkOwners, nameTaken } from '../../rules/accounts.ts'
import type { Limits } from './limits.ts'
import type { Names } from './names.ts'
import type { Member } from './rows.ts'
import { behind, iso, type Tables } from './tables.ts'

/** Members, with the limits of each. */
export function memberStore(tables: Tables, names: Names, limits: Limits): MemberStore {
  const { members, now } = tables
  const record = ({ id, orgId, email, role, projects, createdAt }: Member): MemberRecord => ({
    id,
    organization: tables.nameOf(orgId),
    email,
    role,
    projects: projects && [...projects].sort().map(project => tables.projects.get(project)!.name),
    limits: limits.of(id),
    createdAt: iso(createdAt),
  })
  const apply = (old: Member, { role = old.role, projects, limit }: MemberChanges) => {
    const granted = projects ? projects.map(project => names.findProjectOf(old.orgId, project).id) : projects
    members.set(old.id, { ...old, role, projects: granted === undefined ? old.projects : granted })
    if (limit) limits.change('member', old.id, limit)
  }
  const keepAnOwner = ({ orgId, role }: Member) =>
    checkOwners(
      role,
      () => members.filter(one => one.orgId === orgId && one.role === 'owner' && one.removedAt === null).length,
    )
  const change = (organization: string, member: string, action: string, actor: Actor, work: (row: Member) => void) =>
    tables.run(() => {
      const orgId = names.findOrganization(organization).id
      const { id } = names.findMember(orgId, member)
      const old = members.get(id)!
      const was = record(old)
      work(old)
      const became = record(members.get(id)!)
      tables.note({ actor, action, organization: orgId, subject: id, was, became })
      return became
    })
  return {
    add: (input, actor) =>
      tables.run(() => {
        const { email, role } = input
        const organization = names.findOrganization(input.organization)
        const orgId = organization.id
        const known = members.filter(one => one.orgId === orgId && one.email === email)[0]
        if (known && known.removedAt === null) throw nameTaken.member(email, organization.name)
        // A returning member is the same member: its keys work again.
        const fresh: Member = { id: shortId(), orgId, email, role, projects: null, removedAt: null, createdAt: now() }
        const { id } = known ?? fresh
        apply(known ? { ...known, removedAt: null } : fresh, { ...input, projects: input.projects ?? null })
        const became = record(members.get(id)!)
        tables.note({ actor, action: 'members.add', organization: orgId, subject: id, was: null, became })
        return became
      }),
    async list(organization, page) {
      const orgId = organization === undefined ? undefined : names.findOrganization(organization).id
      const listed = behind(members.all(), page).filter(
        one => one.removedAt === null && (orgId === undefined || one.orgId === orgId),
      )
      return listed.slice(0, page?.limit).map(record)
    },
    update: (organization, member, changes, actor) =>
      change(organization, member, 'members.update', actor, row => {
        if (changes.role !== undefined && changes.role !== 'owner') keepAnOwner(row)
        apply(row, changes)
      }),
    remove: (organization, member, actor) =>
      change(organization, member, 'members.remove', actor, row => {
        keepAnOwner(row)
        members.set(row.id, { ...row, removedAt: now() })
      }),
  }
}
