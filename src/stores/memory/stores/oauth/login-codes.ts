/** Codes by which members prove who they are, once, in memory. */
import type { Actor, LoginCodeInput, LoginCodeRecord } from '../../../../core/ports.ts'
import { loginProject, MAX_LOGIN_CODES, noAccess, noProject } from '../../../rules/oauth.ts'
import { hasAccess } from '../keys.ts'
import type { Names } from '../names.ts'
import { iso, type Tables } from '../tables.ts'

/** Within `run`. */
export function addLoginCode(tables: Tables, names: Names, input: LoginCodeInput, actor: Actor): LoginCodeRecord {
  const { logins, members, projects } = tables
  const { organization, project, hash, expiresAt } = input
  const org = names.findOrganization(organization)
  const member = members.get(names.findMember(org.id, input.member).id)!
  const open = projects.filter(one => one.orgId === org.id && one.archivedAt === null && hasAccess(member, one.id))
  const place = project === undefined ? loginProject(open) : names.findProjectOf(org.id, project)
  if (!place) throw noProject(member.email)
  if (!open.some(({ id }) => id === place.id)) throw noAccess(member.email, place.name)
  logins.set(hash, { hash, memberId: member.id, projectId: place.id, expiresAt, usedAt: null })
  const own = logins.filter(one => one.memberId === member.id)
  for (const old of own.slice(0, Math.max(0, own.length - MAX_LOGIN_CODES))) logins.delete(old.hash)
  const became = { member: member.email, organization: org.name, project: place.name, expiresAt: iso(expiresAt) }
  tables.note({ actor, action: 'members.login-link', organization: org.id, subject: member.id, was: null, became })
  return became
}
