/** Grants in force, as the operator and the audit log see them, and their ends. */
import type { Actor, GrantRecord, OAuthGrantStore } from '../../../core/ports.ts'
import { grantRecord, scopesOf } from '../../rules/oauth.ts'
import type { AuditedTransaction, Change } from '../audit.ts'
import { type Flag, first, numberOf, pageOf, type Sql } from '../sql.ts'

interface GrantRow {
  id: string
  client_id: string
  client_name: string
  key_id: string
  member: string | null
  org_id: string
  scopes: string
  created_at: bigint
  used_at: bigint | null
}

const GRANTS = `
  SELECT grants.id, grants.client_id, grants.client_name, grants.key_id, members.email AS member, projects.org_id,
    grants.scopes, grants.created_at, grants.used_at
  FROM oauth_grants AS grants
  JOIN keys ON keys.id = grants.key_id
  JOIN projects ON projects.id = keys.project_id
  LEFT JOIN members ON members.id = keys.created_by
  WHERE grants.revoked_at IS NULL`
const USABLE = 'grant_id = grants.id AND used_at IS NULL AND expires_at > $3'
const PAGE = `
  ${GRANTS}
    AND (CAST($1 AS text) IS NULL OR projects.org_id = $1) AND (CAST($2 AS text) IS NULL OR keys.id = $2)
    AND keys.revoked_at IS NULL AND (keys.expires_at IS NULL OR keys.expires_at > $3)
    AND (
      EXISTS (SELECT 1 FROM oauth_tokens WHERE ${USABLE}) OR EXISTS (SELECT 1 FROM oauth_codes WHERE ${USABLE})
    )
    AND grants.rowid > CASE WHEN CAST($4 AS text) IS NULL THEN 0
      ELSE coalesce((SELECT rowid FROM oauth_grants WHERE id = $4), 0) END
  ORDER BY grants.rowid LIMIT $5`

/** Finds a grant that has not been revoked, and its organization. */
export async function findGrant(
  sql: Sql,
  id: string,
): Promise<{ readonly record: GrantRecord; readonly organization: string } | undefined> {
  const row = await first<GrantRow>(sql, `${GRANTS} AND grants.id = $1`, [id])
  return row && { record: recordOf(row), organization: row.org_id }
}

/** Lists the grants of which something is in force. */
export async function listGrants(
  { sql, names, now }: AuditedTransaction,
  query: Parameters<OAuthGrantStore['list']>[0],
): Promise<GrantRecord[]> {
  const org = await names.organizationId(query.organization)
  const key = query.key === undefined ? null : await names.key(query.key)
  const { after, limit } = pageOf(query)
  return (await sql.query<GrantRow>(PAGE, [org, key, now(), after, limit])).map(recordOf)
}

const recordOf = (row: GrantRow): GrantRecord =>
  grantRecord({
    id: row.id,
    clientId: row.client_id,
    clientName: row.client_name,
    keyId: row.key_id,
    member: row.member,
    scopes: scopesOf(row.scopes),
    createdAt: Number(row.created_at),
    usedAt: numberOf(row.used_at),
  })

const END = 'UPDATE oauth_grants SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING key_id, made_key'
const REVOKE_KEY = 'UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'

/**
 * Ends a grant that is in force. It is kept, with `revoked_at`, until it is swept. Without an actor the audit log gets
 * no line.
 */
export async function endGrant({ sql, note, now }: Change, id: string, actor?: Actor): Promise<void> {
  const found = await findGrant(sql, id)
  const ended = await first<{ key_id: string; made_key: Flag }>(sql, END, [id, now()])
  if (!found || !ended) return
  if (ended.made_key) await sql.query(REVOKE_KEY, [ended.key_id, now()])
  if (actor === undefined) return
  const line = { actor, action: 'oauth.revoke', organization: found.organization, subject: id }
  await note({ ...line, was: found.record, became: null })
}
