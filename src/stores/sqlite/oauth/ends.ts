/** How grants end, and which keys they may hang on. Everything here is called within a transaction. */
import type { Statement } from 'better-sqlite3'
import type { Actor, GrantRecord, Principal } from '../../../core/ports.ts'
import { type GrantFacts, grantRecord, scopesOf } from '../../rules/oauth.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'

export interface LiveKeys {
  /** The principal of a regular key that may be used now. */
  live(keyId: string): Principal | undefined
  /** Of a key of any status. */
  organizationOf(keyId: string): string | undefined
}

export interface GrantRow {
  id: string
  client_id: string
  client_name: string
  key_id: string
  member: string | null
  org_id: string
  scopes: string
  created_at: number
  used_at: number | null
}

export const GRANTS = `
  SELECT grants.id, grants.client_id, grants.client_name, grants.key_id, members.email AS member, projects.org_id,
    grants.scopes, grants.created_at, grants.used_at
  FROM oauth_grants AS grants
  JOIN keys ON keys.id = grants.key_id
  JOIN projects ON projects.id = keys.project_id
  LEFT JOIN members ON members.id = keys.created_by`

export const recordOf = (row: GrantRow): GrantRecord => grantRecord(factsOf(row))

const factsOf = (row: GrantRow): GrantFacts => ({
  id: row.id,
  clientId: row.client_id,
  clientName: row.client_name,
  keyId: row.key_id,
  member: row.member,
  scopes: scopesOf(row.scopes),
  createdAt: row.created_at,
  usedAt: row.used_at,
})

export class GrantEnds {
  readonly #changes: AuditedTransaction
  readonly #find: Statement<[string], GrantRow>
  readonly #end: Statement<object, { key_id: string; made_key: number }>
  readonly #revokeKey: Statement

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#find = db.prepare(`${GRANTS} WHERE grants.id = ? AND grants.revoked_at IS NULL`)
    this.#end = db.prepare(`
      UPDATE oauth_grants SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL RETURNING key_id, made_key`)
    this.#revokeKey = db.prepare('UPDATE keys SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL')
  }

  find(id: string): GrantRow | undefined {
    return this.#find.get(id)
  }

  /** Ends a grant that is in force, and the key that was made for it. Without an actor nothing is said of it. */
  end(id: string, actor?: Actor): void {
    const row = this.#find.get(id)
    const now = this.#changes.now()
    const ended = this.#end.get({ id, now })
    if (!row || !ended) return
    if (ended.made_key !== 0) this.#revokeKey.run({ id: ended.key_id, now })
    if (actor === undefined) return
    const note = { actor, action: 'oauth.revoke', organization: row.org_id, subject: id }
    this.#changes.note({ ...note, was: recordOf(row), became: null })
  }
}
