/** Codes by which members prove who they are, once. */
import type { Actor, LoginCodeInput, LoginCodeRecord, Role } from '../../../core/ports.ts'
import { loginProject, MAX_LOGIN_CODES, noAccess, noProject } from '../../rules/oauth.ts'
import type { Change } from '../audit.ts'
import { ALL, type Flag, first, type Sql } from '../sql.ts'

interface Login {
  member_id: string
  project_id: string
}
interface Member {
  email: string
  role: Role
  all_projects: Flag
}

const INSERT = 'INSERT INTO login_codes (hash, member_id, project_id, expires_at) VALUES ($1, $2, $3, $4)'
const REMOVE_OLDEST = `
  DELETE FROM login_codes WHERE hash IN (
    SELECT hash FROM login_codes WHERE member_id = $1 ORDER BY rowid DESC LIMIT ${ALL} OFFSET ${MAX_LOGIN_CODES}
  )`
const TAKE = `
  UPDATE login_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL AND expires_at > $2
  RETURNING member_id, project_id`
const PROJECTS = `
  SELECT id, name FROM projects
  WHERE org_id = $1 AND archived_at IS NULL AND (
    CAST($3 AS text) = 'all' OR EXISTS (SELECT 1 FROM member_projects WHERE member_id = $2 AND project_id = projects.id)
  )
  ORDER BY created_at, rowid`

/** Within a transaction: adds a row of `login_codes`, by the SHA-256 of the code. */
export async function addLoginCode(
  { sql, names, note }: Change,
  { organization, member, project, hash, expiresAt }: LoginCodeInput,
  actor: Actor,
): Promise<LoginCodeRecord> {
  const org = await names.organization(organization)
  const { id } = await names.member(org.id, member)
  const text = 'SELECT email, role, all_projects FROM members WHERE id = $1'
  const { email, role, all_projects } = (await first<Member>(sql, text, [id]))!
  const access = role !== 'developer' || all_projects ? 'all' : 'some'
  const open = await sql.query<{ id: string; name: string }>(PROJECTS, [org.id, id, access])
  const place = project === undefined ? loginProject(open) : await names.projectOf(org.id, project)
  if (!place) throw noProject(email)
  if (!open.some(({ id }) => id === place.id)) throw noAccess(email, place.name)
  await sql.query(INSERT, [hash, id, place.id, expiresAt])
  await sql.query(REMOVE_OLDEST, [id])
  const end = new Date(expiresAt).toISOString()
  const became = { member: email, organization: org.name, project: place.name, expiresAt: end }
  await note({ actor, action: 'members.login-link', organization: org.id, subject: id, was: null, became })
  return became
}

/** Within a transaction: uses a code up; undefined for one that is not good. */
export const takeLoginCode = (sql: Sql, hash: string, now: number): Promise<Login | undefined> =>
  first<Login>(sql, TAKE, [hash, now])
