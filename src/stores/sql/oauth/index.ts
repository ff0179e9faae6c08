/** OAuth clients, grants, codes and tokens. Each step is one transaction, so that of many at once exactly one succeeds. */
import type { OAuthGrantStore, OAuthStores } from '../../../core/ports.ts'
import { actorOf, CLIENT_MS, KEPT_MS, noSuchGrant, SWEEP_ROWS } from '../../rules/oauth.ts'
import { type AuditedTransaction, type Change, Undone } from '../audit.ts'
import type { SqlKeys } from '../keys.ts'
import { sqlOAuthClients } from './clients.ts'
import { grantByConsent, grantByCredentials } from './creation.ts'
import { addLoginCode } from './login-codes.ts'
import { endGrant, findGrant, listGrants } from './records.ts'
import { redeemCode, refreshTokens } from './requests.ts'
import { takeToken, tokenOwner } from './tokens.ts'

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

/** Ends and removes what is over: at most `SWEEP_ROWS` rows of each kind; returns how many it removed. */
async function sweepOAuth(change: Change): Promise<number> {
  const { sql } = change
  const now = change.now()
  for (const { id } of await sql.query<{ id: string }>(OVER, [now])) await endGrant(change, id)
  let removed = 0
  for (const text of DELETES) removed += (await sql.query(text, [now - KEPT_MS])).length
  return removed + (await sql.query(CLIENTS, [now, now - CLIENT_MS])).length
}

/** Both stores of OAuth; `keys` gives the keys that grants stand for. */
export const sqlOAuth = (changes: AuditedTransaction, keys: SqlKeys): OAuthStores => ({
  clients: sqlOAuthClients(changes, keys),
  grants: sqlGrants(changes, keys),
})

function sqlGrants(changes: AuditedTransaction, keys: SqlKeys): OAuthGrantStore {
  /** Converts reuse to `invalid_grant`. The principals of an ended grant's tokens are removed from memory. */
  const afterReuse = async <T>(result: T | 'reused'): Promise<T | 'invalid_grant'> => {
    if (result !== 'reused') return result as T
    await changes.keysChanged()
    return 'invalid_grant'
  }
  return {
    addLoginCode: (input, actor) => changes.write(change => addLoginCode(change, input, actor)),
    async begin(grant) {
      try {
        await changes.run(change => grantByConsent(change, keys, grant))
        return true
      } catch (thrown) {
        if (thrown instanceof Undone) return false
        throw thrown
      }
    },
    redeem: async (code, made) => afterReuse(await changes.write(change => redeemCode(change, keys, code, made))),
    refresh: async (token, made) => afterReuse(await changes.write(change => refreshTokens(change, keys, token, made))),
    issue: (client, scopes, resource, access) =>
      changes.run(change => grantByCredentials(change, keys, client, scopes, resource, access)),
    revokeToken: (hash, clientId) =>
      changes.run(async change => {
        const owner = await tokenOwner(change.sql, hash)
        if (owner?.client_id !== clientId) return
        if (owner.kind === 'refresh') await endGrant(change, owner.grant_id, actorOf(clientId))
        else await takeToken(change.sql, hash, change.now())
      }),
    list: query => changes.read(() => listGrants(changes, query)),
    revoke: (id, actor) =>
      changes.run(async change => {
        const found = await findGrant(change.sql, id)
        if (!found) throw noSuchGrant(id)
        await endGrant(change, id, actor)
        return found.record
      }),
    sweep: () => changes.run(sweepOAuth),
  }
}
