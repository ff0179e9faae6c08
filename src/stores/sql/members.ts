/** Operators' changes of members. */
import type { Actor, MemberChanges, MemberRecord, MemberStore, Page, Role } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkOwners, nameTaken } from '../rules/accounts.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { changeLimit, limitsOf } from './limits.ts'
import { isAfter, pageOf } from './page.ts'
import { changeRates, rateLimitsOf, ratesOf } from './rate-limits.ts'
import { type Flag, first, isoOf, type Sql } from './sql.ts'

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

/** `MemberStore` over `members` and `member_projects`; removed members stay, for the audit log. */
export class SqlMembers implements MemberStore {
  readonly #changes: AuditedTransaction

  constructor(changes: AuditedTransaction) {
    this.#changes = changes
  }

  add(input: Parameters<MemberStore['add']>[0], actor: Actor): Promise<MemberRecord> {
    return this.#changes.run(async change => {
      const { sql, names, note } = change
      const { email, role, projects = null } = input
      const { id: org, name } = await names.organization(input.organization)
      const added = await first<{ id: string }>(sql, ADD, [shortId(), org, email, role, this.#changes.now()])
      if (!added) throw nameTaken.member(email, name)
      const { id } = added
      await this.#apply(change, id, org, { ...input, projects })
      const became = await this.#record(sql, await rowIn(sql, id))
      await note({ actor, action: 'members.add', organization: org, subject: id, was: null, became })
      return became
    })
  }

  list(organization?: string, page?: Page): Promise<MemberRecord[]> {
    const { after, limit } = pageOf(page)
    const { sql, names } = this.#changes
    return this.#changes.read(async () => {
      const org = await names.organizationId(organization)
      const rows = await sql.query<MemberRow>(PAGE, [org, after, limit])
      return Promise.all(rows.map(row => this.#record(sql, row)))
    })
  }

  update(organization: string, member: string, changes: MemberChanges, actor: Actor): Promise<MemberRecord> {
    return this.#change(organization, member, 'members.update', actor, async (row, change) => {
      if (changes.role !== undefined && changes.role !== 'owner') await keepAnOwner(change.sql, row)
      await this.#apply(change, row.id, row.org_id, changes)
    })
  }

  remove(organization: string, member: string, actor: Actor): Promise<MemberRecord> {
    return this.#change(organization, member, 'members.remove', actor, async (row, { sql }) => {
      await keepAnOwner(sql, row)
      await sql.query('UPDATE members SET removed_at = $1 WHERE id = $2', [this.#changes.now(), row.id])
    })
  }

  #change(
    organization: string,
    member: string,
    action: string,
    actor: Actor,
    work: (row: MemberRow, change: Change) => Promise<void>,
  ): Promise<MemberRecord> {
    return this.#changes.run(async change => {
      const { sql, names, note } = change
      const org = (await names.organization(organization)).id
      const { id } = await names.member(org, member)
      const row = await rowIn(sql, id)
      const was = await this.#record(sql, row)
      await work(row, change)
      const became = await this.#record(sql, await rowIn(sql, id))
      await note({ actor, action, organization: org, subject: id, was, became })
      return became
    })
  }

  async #apply(
    change: Change,
    id: string,
    org: string,
    { role, projects, limit, rates }: MemberChanges,
  ): Promise<void> {
    const { sql, names } = change
    if (role !== undefined) await sql.query('UPDATE members SET role = $1 WHERE id = $2', [role, id])
    if (projects !== undefined) {
      await sql.query('UPDATE members SET all_projects = $1 WHERE id = $2', [projects === null, id])
      await sql.query('DELETE FROM member_projects WHERE member_id = $1', [id])
      for (const project of projects ?? []) await sql.query(GRANT, [id, (await names.projectOf(org, project)).id])
    }
    if (limit) await changeLimit(sql, 'member', id, limit, this.#changes.now())
    await changeRates(sql, id, rates)
  }

  async #record(sql: Sql, row: MemberRow): Promise<MemberRecord> {
    const projects = row.all_projects ? null : await sql.query<{ name: string }>(PROJECTS, [row.id])
    return {
      id: row.id,
      organization: row.organization,
      email: row.email,
      role: row.role,
      projects: projects?.map(({ name }) => name) ?? null,
      limits: await limitsOf(sql, row.id, this.#changes.now()),
      createdAt: isoOf(row.created_at),
      ...rateLimitsOf(row.rates),
    }
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
