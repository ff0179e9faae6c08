/** End-user sessions, which keys begin. They are no operator changes, and not part of the audit log. */
import type { Statement } from 'better-sqlite3'
import type { SessionInput, SessionStore } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { shortId } from '../../lib/id.ts'
import { MAX_SESSIONS, SESSIONS_FORGOTTEN } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import { Limits } from './limits.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

/** No request that counts against a limit of the session runs. */
const IDLE = 'NOT EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id AND held > 0)'

/** Sessions are rows of `keys` whose `parent_id` is the key that began them. */
export class SqliteSessions implements SessionStore {
  readonly #writer: Writer
  readonly #now: () => number
  readonly #limits: Limits
  readonly #insert: Statement
  readonly #over: Statement<[string, number], string>
  readonly #beyond: Statement<[string], string>
  readonly #delete: Statement<[string], string>
  readonly #forget: (hash: string) => void

  /** `forget` receives the hashes of expired secrets. */
  constructor(db: Sqlite, writer: Writer, now: () => number, forget: (hash: string) => void) {
    this.#writer = writer
    this.#now = now
    this.#forget = forget
    this.#limits = new Limits(db, now)
    this.#insert = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at, expires_at, parent_id, models)
      VALUES (@id, @project, @customer, 'session', @hash, @preview, @member, @now, @expiresAt, @parent, @models)`)
    this.#over = db
      .prepare<[string, number], string>(
        `SELECT id FROM keys WHERE parent_id = ? AND expires_at <= ? AND ${IDLE}
         ORDER BY expires_at LIMIT ${SESSIONS_FORGOTTEN}`,
      )
      .pluck()
    this.#beyond = db
      .prepare<[string], string>(
        `SELECT id FROM keys WHERE ${IDLE} AND id IN (
           SELECT id FROM keys WHERE parent_id = ?
           ORDER BY expires_at DESC LIMIT ${SESSIONS_FORGOTTEN} OFFSET ${MAX_SESSIONS - 1}
         )`,
      )
      .pluck()
    this.#delete = db.prepare<[string], string>('DELETE FROM keys WHERE id = ? RETURNING hash').pluck()
  }

  async begin({ principal, customer, models, limit, expiresAt }: SessionInput): Promise<{ id: string; key: string }> {
    const { keyId: parent, projectId: project, member } = principal
    const id = shortId()
    const { key, hash, preview } = newSecret('session')
    const facts = { id, project, customer, hash, preview, expiresAt, parent }
    const work = () => {
      const now = this.#now()
      for (const over of new Set([...this.#over.all(parent, now), ...this.#beyond.all(parent)])) {
        this.#limits.forget(over)
        const secret = this.#delete.get(over)
        if (secret !== undefined) this.#forget(secret)
      }
      this.#insert.run({ ...facts, now, member: member?.id ?? null, models: models ? JSON.stringify(models) : null })
      if (limit !== undefined) this.#limits.change('session', id, { set: { amount: limit } })
    }
    await this.#writer.run(work, 'durable', errors.storeUnavailable)
    return { id, key }
  }
}
