/** Operators' changes of members. */
import type { Statement } from 'better-sqlite3'
import type { Actor, MemberChanges, MemberRecord, MemberStore, Page, Role } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkOwners, nameTaken } from '../rules/accounts.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import { Limits } from './limits.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'

interface MemberRow {
  id: string
  org_id: string
  organization: string
  email: string
  role: Role
  all_projects: number
  created_at: number
  /** A JSON array of names. */
  projects: string
}

const ROWS = `
  SELECT members.id, members.org_id, organizations.name AS organization, email, role, all_projects, members.created_at,
    (
      SELECT json_group_array(projects.name) FROM member_projects JOIN projects ON projects.id = project_id
      WHERE member_id = members.id
    ) AS projects
  FROM members JOIN organizations ON organizations.id = members.org_id`

/** `MemberStore` over `members` and `member_projects`; removed members stay, for the audit log. */
export class SqliteMembers implements MemberStore {
  readonly #changes: AuditedTransaction
  readonly #limits: Limits
  readonly #add: Statement<object, string>
  readonly #setRole: Statement
  readonly #setAccess: Statement
  readonly #revoke: Statement
  readonly #grant: Statement
  readonly #remove: Statement
  readonly #owners: Statement<[string], number>
  readonly #byId: Statement<[string], MemberRow>
  readonly #list: Statement<PageRow & { org: string | null }, MemberRow>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#limits = new Limits(db, changes.now)
    // A returning member is the same member: its keys work again.
    this.#add = db
      .prepare<object, string>(`
        INSERT INTO members (id, org_id, email, role, created_at) VALUES (@id, @org, @email, @role, @now)
        ON CONFLICT (org_id, email) DO UPDATE SET role = excluded.role, removed_at = NULL
          WHERE removed_at IS NOT NULL
        RETURNING id`)
      .pluck()
    this.#setRole = db.prepare('UPDATE members SET role = ? WHERE id = ?')
    this.#setAccess = db.prepare('UPDATE members SET all_projects = ? WHERE id = ?')
    this.#revoke = db.prepare('DELETE FROM member_projects WHERE member_id = ?')
    this.#grant = db.prepare('INSERT OR IGNORE INTO member_projects (member_id, project_id) VALUES (?, ?)')
    this.#remove = db.prepare('UPDATE members SET removed_at = ? WHERE id = ?')
    this.#owners = db
      .prepare<[string], number>(
        "SELECT count(*) FROM members WHERE org_id = ? AND role = 'owner' AND removed_at IS NULL",
      )
      .pluck()
    this.#byId = db.prepare(`${ROWS} WHERE members.id = ?`)
    this.#list = db.prepare(`
      ${ROWS}
      WHERE removed_at IS NULL AND (@org IS NULL OR org_id = @org)
        AND members.rowid > CASE WHEN @after IS NULL THEN 0 ELSE (SELECT rowid FROM members WHERE id = @after) END
      ORDER BY members.rowid LIMIT @limit`)
  }

  add(input: Parameters<MemberStore['add']>[0], actor: Actor): Promise<MemberRecord> {
    return this.#changes.run(() => {
      const { directory, now } = this.#changes
      const { email, role } = input
      const organization = directory.organization(input.organization)
      const id = this.#add.get({ id: shortId(), org: organization.id, email, role, now: now() })
      if (id === undefined) throw nameTaken.member(email, organization.name)
      this.#apply(id, organization.id, { ...input, projects: input.projects ?? null })
      const became = this.#record(this.#byId.get(id)!)
      const note = { actor, action: 'members.add', organization: organization.id, subject: id }
      this.#changes.note({ ...note, was: null, became })
      return became
    })
  }

  async list(organization?: string, page?: Page): Promise<MemberRecord[]> {
    const org = organization === undefined ? null : this.#changes.directory.organization(organization).id
    return this.#list.all({ org, ...pageOf(page) }).map(row => this.#record(row))
  }

  update(organization: string, member: string, changes: MemberChanges, actor: Actor): Promise<MemberRecord> {
    return this.#change(organization, member, 'members.update', actor, row => {
      if (changes.role !== undefined && changes.role !== 'owner') this.#keepAnOwner(row)
      this.#apply(row.id, row.org_id, changes)
    })
  }

  remove(organization: string, member: string, actor: Actor): Promise<MemberRecord> {
    return this.#change(organization, member, 'members.remove', actor, row => {
      this.#keepAnOwner(row)
      this.#remove.run(this.#changes.now(), row.id)
    })
  }

  #change(
    organization: string,
    member: string,
    action: string,
    actor: Actor,
    work: (row: MemberRow) => void,
  ): Promise<MemberRecord> {
    return this.#changes.run(() => {
      const { directory } = this.#changes
      const org = directory.organization(organization).id
      const { id } = directory.member(org, member)
      const row = this.#byId.get(id)!
      const was = this.#record(row)
      work(row)
      const became = this.#record(this.#byId.get(id)!)
      this.#changes.note({ actor, action, organization: org, subject: id, was, became })
      return became
    })
  }

  #apply(id: string, org: string, { role, projects, limit }: MemberChanges): void {
    if (role !== undefined) this.#setRole.run(role, id)
    if (projects !== undefined) {
      this.#setAccess.run(projects === null ? 1 : 0, id)
      this.#revoke.run(id)
      for (const project of projects ?? []) this.#grant.run(id, this.#changes.directory.projectOf(org, project).id)
    }
    if (limit) this.#limits.change('member', id, limit)
  }

  #keepAnOwner({ org_id, role }: MemberRow): void {
    checkOwners(role, () => this.#owners.get(org_id)!)
  }

  #record(row: MemberRow): MemberRecord {
    return {
      id: row.id,
      organization: row.organization,
      email: row.email,
      role: row.role,
      projects: row.all_projects !== 0 ? null : (JSON.parse(row.projects) as string[]),
      limits: this.#limits.of(row.id),
      createdAt: new Date(row.created_at).toISOString(),
    }
  }
}
