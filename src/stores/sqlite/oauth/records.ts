/** Grants in force, as the operator and the audit log see them. */
import type { Statement } from 'better-sqlite3'
import type { GrantRecord, OAuthGrantStore } from '../../../core/ports.ts'
import { grantRecord, scopesOf } from '../../rules/oauth.ts'
import type { NameResolver } from '../name-resolver.ts'
import type { Sqlite } from '../open.ts'
import { type PageRow, pageOf } from '../page.ts'

interface GrantRow {
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

const GRANTS = `
  SELECT grants.id, grants.client_id, grants.client_name, grants.key_id, members.email AS member, projects.org_id,
    grants.scopes, grants.created_at, grants.used_at
  FROM oauth_grants AS grants
  JOIN keys ON keys.id = grants.key_id
  JOIN projects ON projects.id = keys.project_id
  LEFT JOIN members ON members.id = keys.created_by
  WHERE grants.revoked_at IS NULL`

const USABLE = 'grant_id = grants.id AND used_at IS NULL AND expires_at > @now'

/** Reads `oauth_grants` with the members behind their keys. */
export class GrantRecords {
  readonly #directory: NameResolver
  readonly #find: Statement<[string], GrantRow>
  readonly #list: Statement<PageRow & { org: string | null; key: string | null; now: number }, GrantRow>

  constructor(db: Sqlite, directory: NameResolver) {
    this.#directory = directory
    this.#find = db.prepare(`${GRANTS} AND grants.id = ?`)
    this.#list = db.prepare(`
      ${GRANTS}
        AND (@org IS NULL OR projects.org_id = @org) AND (@key IS NULL OR keys.id = @key)
        AND keys.revoked_at IS NULL AND (keys.expires_at IS NULL OR keys.expires_at > @now)
        AND (
          EXISTS (SELECT 1 FROM oauth_tokens WHERE ${USABLE}) OR EXISTS (SELECT 1 FROM oauth_codes WHERE ${USABLE})
        )
        AND grants.rowid > CASE WHEN @after IS NULL THEN 0
          ELSE coalesce((SELECT rowid FROM oauth_grants WHERE id = @after), 0) END
      ORDER BY grants.rowid LIMIT @limit`)
  }

  /** A grant that has not been revoked, and its organization. */
  find(id: string): { readonly record: GrantRecord; readonly organization: string } | undefined {
    const row = this.#find.get(id)
    return row && { record: recordOf(row), organization: row.org_id }
  }

  list(query: Parameters<OAuthGrantStore['list']>[0], now: number): GrantRecord[] {
    const org = query.organization === undefined ? null : this.#directory.organization(query.organization).id
    const key = query.key === undefined ? null : this.#directory.key(query.key)
    return this.#list.all({ org, key, now, ...pageOf(query) }).map(recordOf)
  }
}

const recordOf = (row: GrantRow): GrantRecord =>
  grantRecord({
    id: row.id,
    clientId: row.client_id,
    clientName: row.client_name,
    keyId: row.key_id,
    member: row.member,
    scopes: scopesOf(row.scopes),
    createdAt: row.created_at,
    usedAt: row.used_at,
  })
