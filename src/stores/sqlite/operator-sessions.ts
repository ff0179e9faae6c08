/** Operator sessions: one request at a time in a project, without one of its keys. */
import type { Statement } from 'better-sqlite3'
import type { Actor, OperatorSession, OperatorSessionStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { OPERATOR_KEY, OPERATOR_SESSION_MS, operatorKeyRevoked } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { ProjectPlace } from './name-resolver.ts'
import type { Sqlite } from './open.ts'

/** Stands, with the project's id, for the hash of the parent key: no secret hashes to it. */
const NO_HASH = `none: ${OPERATOR_KEY} of `

/** Sessions are rows of `keys`, under one parent key for each project that authenticates nothing. */
export class SqliteOperatorSessions implements OperatorSessionStore {
  readonly #changes: AuditedTransaction
  readonly #parent: Statement<[string], { id: string; revoked_at: number | null }>
  readonly #insert: Statement
  readonly #over: Statement
  readonly #extend: Statement
  readonly #delete: Statement<[string], string>
  readonly #close: Statement

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#parent = db.prepare('SELECT id, revoked_at FROM keys WHERE hash = ?')
    this.#insert = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at, expires_at, parent_id)
      VALUES (@id, @project, '${OPERATOR_KEY}', @kind, @hash, @preview, @now, @expiresAt, @parent)`)
    this.#over = db.prepare('DELETE FROM keys WHERE parent_id = ? AND expires_at <= ?')
    this.#extend = db.prepare('UPDATE keys SET expires_at = ? WHERE id = ?')
    const parents = `SELECT id FROM keys WHERE hash = '${NO_HASH}' || project_id`
    this.#delete = db
      .prepare<[string], string>(`DELETE FROM keys WHERE id = ? AND parent_id IN (${parents}) RETURNING parent_id`)
      .pluck()
    this.#close = db.prepare(
      'UPDATE keys SET expires_at = coalesce((SELECT max(expires_at) FROM keys WHERE parent_id = @id), @now) WHERE id = @id',
    )
  }

  begin(project: string, actor: Actor): Promise<OperatorSession> {
    return this.#changes.run(() => {
      const place = this.#changes.directory.project(project)
      const now = this.#changes.now()
      const expiresAt = now + OPERATOR_SESSION_MS
      const facts = { project: place.id, now, expiresAt }
      const parent = this.#parentIn(place, facts)
      this.#over.run(parent, now)
      this.#extend.run(expiresAt, parent)
      const { key, hash, preview } = newSecret('session')
      const id = shortId()
      this.#insert.run({ ...facts, id, kind: 'session', hash, preview, parent })
      const became = { project: place.name, expiresAt: new Date(expiresAt).toISOString() }
      const organization = place.org_id
      this.#changes.note({ actor, action: 'sessions.begin', organization, subject: id, was: null, became })
      return { id, key, expiresAt: became.expiresAt }
    })
  }

  async end(id: string): Promise<void> {
    await this.#changes.run(() => {
      const parent = this.#delete.get(id)
      if (parent !== undefined) this.#close.run({ id: parent, now: this.#changes.now() })
    })
  }

  /** Id of the project's parent key of operator sessions. */
  #parentIn(place: ProjectPlace, facts: { project: string; now: number; expiresAt: number }): string {
    const hash = NO_HASH + place.id
    const known = this.#parent.get(hash)
    if (known && known.revoked_at !== null) throw operatorKeyRevoked(place.name)
    if (known) return known.id
    const id = shortId()
    this.#insert.run({ ...facts, id, kind: 'key', hash, preview: 'none', parent: null })
    return id
  }
}
