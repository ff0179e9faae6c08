/** Sessions of end users, which keys begin. They are no changes of an operator's: no line of the audit log is theirs. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import { shortId } from '../../core/id.ts'
import type { SessionInput, SessionStore } from '../../core/ports.ts'
import { Limits } from './limits.ts'
import type { Sqlite } from './open.ts'
import { newSecret } from './secret.ts'
import type { Writer } from './writer.ts'

/** Sessions that are over leave so many at a time, when their key begins another one. */
const FORGOTTEN = 20

export class SqliteSessions implements SessionStore {
  readonly #writer: Writer
  readonly #now: () => number
  readonly #limits: Limits
  readonly #insert: Statement
  readonly #over: Statement<[string, number], string>
  readonly #delete: Statement

  constructor(db: Sqlite, writer: Writer, now: () => number) {
    this.#writer = writer
    this.#now = now
    this.#limits = new Limits(db, now)
    this.#insert = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at, expires_at, parent_id, models)
      VALUES (@id, @project, @customer, 'session', @hash, @preview, @member, @now, @expiresAt, @parent, @models)`)
    this.#over = db
      .prepare<[string, number], string>(
        `SELECT id FROM keys WHERE parent_id = ? AND expires_at <= ? ORDER BY expires_at LIMIT ${FORGOTTEN}`,
      )
      .pluck()
    this.#delete = db.prepare('DELETE FROM keys WHERE id = ?')
  }

  async begin({ principal, customer, models, limit, expiresAt }: SessionInput): Promise<{ id: string; key: string }> {
    const { keyId: parent, projectId: project, member } = principal
    const id = shortId()
    const { key, hash, preview } = newSecret('session')
    const facts = { id, project, customer, hash, preview, expiresAt, parent }
    const work = () => {
      const now = this.#now()
      for (const over of this.#over.all(parent, now)) {
        this.#limits.forget(over)
        this.#delete.run(over)
      }
      this.#insert.run({ ...facts, now, member: member?.id ?? null, models: models ? JSON.stringify(models) : null })
      if (limit !== undefined) this.#limits.change('session', id, { set: { amount: limit } })
    }
    await this.#writer.run(work, 'durable', errors.storeUnavailable)
    return { id, key }
  }
}
