/** Operators' changes of members. */
import type { Actor, MemberChanges, MemberRecord, MemberStore, Role } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkOwners, nameTaken } from '../rules/accounts.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { changeLimit, limitsOf } from './limits.ts'
import { changeRates, rateLimitsOf, ratesOf } from './rate-limits.ts'
import { type Flag, first, isAfter, isoOf, pageOf, type Sql } from './sql.ts'

interface MemberRow {
  id: string
  org_id: string
  organization: string
  email: string
  role: Role
  all_projects: Flag
  created_at: bigint
  rates: string | null
}

const ROWS = `
  SELECT members.id, members.org_id, organizations.name AS organization, email, role, all_projects, members.created_at,
    ${ratesOf('members.id')}
  FROM members JOIN organizations ON organizations.id = members.org_id`
const PAGE = `
  ${ROWS}
  WHERE removed_at IS NULL AND (CAST($1 AS text) IS NULL OR org_id = $1) AND ${isAfter('members', 2)}
  ORDER BY members.rowid LIMIT $3`
/** A returning member is the same member: its keys work again. */
const ADD = `
  INSERT INTO members (id, org_id, email, role, created_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (org_id, email) DO UPDATE SET role = excluded.role, removed_at = NULL
    WHERE members.removed_at IS NOT NULL
  RETURNING id`
const PROJECTS = `
  SELECT projects.name FROM member_projects JOIN projects ON projects.id = project_id
  WHERE member_id = $1 ORDER BY project_id`
const OWNERS = "SELECT count(*) AS owners FROM members WHERE org_id = $1 AND role = 'owner' AND removed_at IS NULL"
const GRANT = 'INSERT INTO member_projects (member_id, project_id) VALUES ($1, $2) ON CONFLICT DO NOTHING'

/** Makes the `MemberStore` over `members` and `member_projects`; removed members stay, for the audit log. */
export function sqlMembers(changes: AuditedTransaction): MemberStore {
  const changeMember = (
    organization: string,
    member: string,
    action: string,
    actor: Actor,
    work: (row: MemberRow, change: Change) => Promise<void>,
  ): Promise<MemberRecord> =>
    changes.run(async change => {
      const { sql, names, note } = change
      const org = (await names.organization(organization)).id
      const { id } = await names.member(org, member)
      const row = await rowIn(sql, id)
      const was = await recordOf(change, row)
      await work(row, change)
      const became = await recordOf(change, await rowIn(sql, id))
      await note({ actor, action, organization: org, subject: id, was, became })
      return became
    })

  return {
    add: (input, actor) =>
      changes.run(async change => {
        const { sql, names, note, now } = change
        const { email, role, projects = null } = input
        const { id: org, name } = await names.organization(input.organization)
        const added = await first<{ id: string }>(sql, ADD, [shortId(), org, email, role, now()])
        if (!added) throw nameTaken.member(email, name)
        const { id } = added
        await apply(change, id, org, { ...input, projects })
        const became = await recordOf(change, await rowIn(sql, id))
        await note({ actor, action: 'members.add', organization: org, subject: id, was: null, became })
        return became
      }),

    list(organization, page) {
      const { after, limit } = pageOf(page)
      return changes.read(async () => {
        const org = await changes.names.organizationId(organization)
        const rows = await changes.sql.query<MemberRow>(PAGE, [org, after, limit])
        return Promise.all(rows.map(row => recordOf(changes, row)))
      })
    },

    update: (organization, member, input, actor) =>
      changeMember(organization, member, 'members.update', actor, async (row, change) => {
        if (input.role !== undefined && input.role !== 'owner') await keepAnOwner(change.sql, row)
        await apply(change, row.id, row.org_id, input)
      }),

    remove: (organization, member, actor) =>
      changeMember(organization, member, 'members.remove', actor, async (row, { sql, now }) => {
        await keepAnOwner(sql, row)
        await sql.query('UPDATE members SET removed_at = $1 WHERE id = $2', [now(), row.id])
      }),
  }
}

async function apply(
  { sql, names, now }: Change,
  id: string,
  org: string,
  { role, projects, limit, rates }: MemberChanges,
): Promise<void> {
  if (role !== undefined) await sql.query('UPDATE members SET role = $1 WHERE id = $2', [role, id])
  if (projects !== undefined) {
    await sql.query('UPDATE members SET all_projects = $1 WHERE id = $2', [projects === null, id])
    await sql.query('DELETE FROM member_projects WHERE member_id = $1', [id])
    for (const project of projects ?? []) await sql.query(GRANT, [id, (await names.projectOf(org, project)).id])
  }
  if (limit) await changeLimit(sql, 'member', id, limit, now())
  await changeRates(sql, id, rates)
}

async function recordOf({ sql, now }: Pick<Change, 'sql' | 'now'>, row: MemberRow): Promise<MemberRecord> {
  const projects = row.all_projects ? null : await sql.query<{ name: string }>(PROJECTS, [row.id])
  return {
    id: row.id,
    organization: row.organization,
    email: row.email,
    role: row.role,
    projects: projects?.map(({ name }) => name) ?? null,
    limits: await limitsOf(sql, row.id, now()),
    createdAt: isoOf(row.created_at),
    ...rateLimitsOf(row.rates),
  }
}

async function keepAnOwner(sql: Sql, { org_id, role }: MemberRow): Promise<void> {
  const row = await first<{ owners: bigint }>(sql, OWNERS, [org_id])
  checkOwners(role, Number(row!.owners))
}

async function rowIn(sql: Sql, id: string): Promise<MemberRow> {
  const row = await first<MemberRow>(sql, `${ROWS} WHERE members.id = $1`, [id])
  return row!
}
