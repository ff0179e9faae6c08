/** Ends grants, and the keys that were made for them alone. */
import type { Statement } from 'better-sqlite3'
import type { Actor } from '../../../core/ports.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'
import type { GrantRecords } from './records.ts'

/** A grant that has ended is kept, with `revoked_at`, until it is swept. */
export class GrantEnds {
  readonly #changes: AuditedTransaction
  readonly #records: GrantRecords
  readonly #end: Statement<object, { key_id: string; made_key: number }>
  readonly #revokeKey: Statement

  constructor(db: Sqlite, changes: AuditedTransaction, records: GrantRecords) {
    this.#changes = changes
    this.#records = records
    this.#end = db.prepare(`
      UPDATE oauth_grants SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL RETURNING key_id, made_key`)
    this.#revokeKey = db.prepare('UPDATE keys SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL')
  }

  /** Within a transaction: ends a grant that is in force. Without an actor the audit log gets no line. */
  end(id: string, actor?: Actor): void {
    const found = this.#records.find(id)
    const now = this.#changes.now()
    const ended = this.#end.get({ id, now })
    if (!found || !ended) return
    if (ended.made_key !== 0) this.#revokeKey.run({ id: ended.key_id, now })
    if (actor === undefined) return
    const note = { actor, action: 'oauth.revoke', organization: found.organization, subject: id }
    this.#changes.note({ ...note, was: found.record, became: null })
  }
}
