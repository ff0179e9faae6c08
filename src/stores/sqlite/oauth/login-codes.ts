/** Codes by which members prove who they are, once. Everything here is called within a transaction. */
import type { Statement } from 'better-sqlite3'
import type { Actor, LoginCodeInput, LoginCodeRecord, Role } from '../../../core/ports.ts'
import { loginProject, MAX_LOGIN_CODES, noAccess, noProject } from '../../rules/oauth.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'

interface Login {
  member_id: string
  project_id: string
}
interface Named {
  id: string
  name: string
}

/** The rows of `login_codes`, by the SHA-256 of the code. */
export class LoginCodes {
  readonly #changes: AuditedTransaction
  readonly #insert: Statement
  readonly #old: Statement
  readonly #take: Statement<object, Login>
  readonly #member: Statement<[string], { email: string; role: Role; all_projects: number }>
  readonly #projects: Statement<{ org: string; member: string; all: number }, Named>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#insert = db.prepare(`
      INSERT INTO login_codes (hash, member_id, project_id, expires_at) VALUES (@hash, @member, @project, @expiresAt)`)
    this.#old = db.prepare(`
      DELETE FROM login_codes WHERE rowid IN (
        SELECT rowid FROM login_codes WHERE member_id = ? ORDER BY rowid DESC LIMIT -1 OFFSET ${MAX_LOGIN_CODES}
      )`)
    this.#take = db.prepare(`
      UPDATE login_codes SET used_at = @now WHERE hash = @hash AND used_at IS NULL AND expires_at > @now
      RETURNING member_id, project_id`)
    this.#member = db.prepare('SELECT email, role, all_projects FROM members WHERE id = ?')
    this.#projects = db.prepare(`
      SELECT id, name FROM projects
      WHERE org_id = @org AND archived_at IS NULL AND (
        @all = 1 OR EXISTS (SELECT 1 FROM member_projects WHERE member_id = @member AND project_id = projects.id)
      )
      ORDER BY created_at, rowid`)
  }

  add({ organization, member, project, hash, expiresAt }: LoginCodeInput, actor: Actor): LoginCodeRecord {
    const { directory } = this.#changes
    const org = directory.organization(organization)
    const { id } = directory.member(org.id, member)
    const { email, role, all_projects } = this.#member.get(id)!
    const all = role !== 'developer' || all_projects !== 0 ? 1 : 0
    const open = this.#projects.all({ org: org.id, member: id, all })
    const place = project === undefined ? loginProject(open) : directory.projectOf(org.id, project)
    if (!place) throw noProject(email)
    if (!open.some(({ id }) => id === place.id)) throw noAccess(email, place.name)
    this.#insert.run({ hash, member: id, project: place.id, expiresAt })
    this.#old.run(id)
    const end = new Date(expiresAt).toISOString()
    const became = { member: email, organization: org.name, project: place.name, expiresAt: end }
    const note = { actor, action: 'members.login-link', organization: org.id, subject: id }
    this.#changes.note({ ...note, was: null, became })
    return became
  }

  /** Uses a code up; undefined for one that is not good. */
  take(hash: string): Login | undefined {
    return this.#take.get({ hash, now: this.#changes.now() })
  }
}
