/** Access and refresh tokens of grants. */
import type { NewTokens } from '../../../core/ports.ts'
import { MAX_TOKENS_OF_GRANT } from '../../rules/oauth.ts'
import { ALL, first, type Sql } from '../sql.ts'

/** Owner of a token. */
interface TokenOwner {
  readonly kind: 'access' | 'refresh'
  readonly grant_id: string
  readonly client_id: string
}

/** The grant that tokens are issued for; `scopes` as its row has them. */
interface TokenGrant {
  readonly grant_id: string
  readonly client_id: string
  readonly scopes: string
}

const INSERT = 'INSERT INTO oauth_tokens (hash, kind, grant_id, scopes, expires_at) VALUES ($1, $2, $3, $4, $5)'
const REMOVE_OLDEST = `
  DELETE FROM oauth_tokens WHERE hash IN (
    SELECT hash FROM oauth_tokens WHERE grant_id = $1 AND kind = $2
    ORDER BY rowid DESC LIMIT ${ALL} OFFSET ${MAX_TOKENS_OF_GRANT}
  )`
const OWNER = `
  SELECT tokens.kind, tokens.grant_id, grants.client_id
  FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id WHERE tokens.hash = $1`

/** Within a transaction. A refresh token has all scopes of its grant; `scopes` are those of the access token. */
export async function issueTokens(
  sql: Sql,
  { grant_id: grant, client_id, scopes: granted }: TokenGrant,
  scopes: readonly string[],
  { access, refresh }: NewTokens,
  now: number,
): Promise<void> {
  await sql.query(INSERT, [access.hash, 'access', grant, scopes.join(' '), access.expiresAt])
  if (refresh) await sql.query(INSERT, [refresh.hash, 'refresh', grant, granted, refresh.expiresAt])
  for (const kind of ['access', 'refresh']) await sql.query(REMOVE_OLDEST, [grant, kind])
  await sql.query('UPDATE oauth_grants SET used_at = $2 WHERE id = $1', [grant, now])
  await sql.query('UPDATE oauth_clients SET used_at = $2 WHERE id = $1', [client_id, now])
}

/** Finds whose token has this hash. */
export const tokenOwner = (sql: Sql, hash: string): Promise<TokenOwner | undefined> =>
  first<TokenOwner>(sql, OWNER, [hash])

/** Within a transaction: makes a token used or revoked. */
export async function takeToken(sql: Sql, hash: string, now: number): Promise<void> {
  await sql.query('UPDATE oauth_tokens SET used_at = $2 WHERE hash = $1 AND used_at IS NULL', [hash, now])
}
