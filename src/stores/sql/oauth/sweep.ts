/** Ends and removes what is over of clients, grants, codes and tokens, some at a time. */
import { CLIENT_MS, KEPT_MS, SWEEP_ROWS } from '../../rules/oauth.ts'
import type { Change } from '../audit.ts'
import { endGrant } from './ends.ts'

const LIVE = 'grant_id = oauth_grants.id AND used_at IS NULL AND expires_at > $1'
/** Grants of which nothing is in force. */
const OVER = `
  SELECT id FROM oauth_grants WHERE revoked_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM oauth_tokens WHERE ${LIVE}) AND NOT EXISTS (SELECT 1 FROM oauth_codes WHERE ${LIVE})
  LIMIT ${SWEEP_ROWS}`
const GONE = `SELECT id FROM oauth_grants WHERE revoked_at < $1 LIMIT ${SWEEP_ROWS}`

const old = (table: string, ended: string) => `
  DELETE FROM ${table} WHERE hash IN (SELECT hash FROM ${table} WHERE ${ended} < $1 LIMIT ${SWEEP_ROWS}) RETURNING 1 AS gone`
const DELETES = [
  old('login_codes', 'expires_at'),
  old('oauth_codes', 'expires_at'),
  old('oauth_tokens', 'coalesce(used_at, expires_at)'),
  `DELETE FROM oauth_codes WHERE grant_id IN (${GONE}) RETURNING 1 AS gone`,
  `DELETE FROM oauth_tokens WHERE grant_id IN (${GONE}) RETURNING 1 AS gone`,
  `DELETE FROM oauth_grants WHERE id IN (${GONE}) RETURNING 1 AS gone`,
]
const CLIENTS = `
  DELETE FROM oauth_clients WHERE id IN (
    SELECT oauth_clients.id FROM oauth_clients LEFT JOIN keys ON keys.id = key_id
    WHERE CASE WHEN key_id IS NULL
      THEN coalesce(used_at, oauth_clients.created_at) < $2 AND NOT EXISTS (
        SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id AND oauth_grants.revoked_at IS NULL
      )
      ELSE keys.revoked_at IS NOT NULL OR keys.expires_at <= $1
    END
    LIMIT ${SWEEP_ROWS}
  ) RETURNING 1 AS gone`

/** Removes at most `SWEEP_ROWS` rows of each kind; returns how many it removed. */
export async function sweepOAuth(change: Change): Promise<number> {
  const { sql } = change
  const now = change.now()
  for (const { id } of await sql.query<{ id: string }>(OVER, [now])) await endGrant(change, id)
  let removed = 0
  for (const text of DELETES) removed += (await sql.query(text, [now - KEPT_MS])).length
  return removed + (await sql.query(CLIENTS, [now, now - CLIENT_MS])).length
}
