/** Token requests: codes and refresh tokens are exchanged for new tokens, each once. */
import type { Issued, NewTokens, PresentedCode, PresentedRefreshToken } from '../../../core/ports.ts'
import { actorOf, narrowed, presented, scopesOf } from '../../rules/oauth.ts'
import type { Change } from '../audit.ts'
import type { SqlKeys } from '../keys.ts'
import { first, numberOf } from '../sql.ts'
import { endGrant } from './records.ts'
import { issueTokens, takeToken } from './tokens.ts'

interface PresentedRow {
  grant_id: string
  client_id: string
  key_id: string
  scopes: string
  revoked_at: bigint | null
  expires_at: bigint
  used_at: bigint | null
}
interface CodeRow extends PresentedRow {
  redirect_uri: string
  challenge: string
}

const OF_GRANT = 'grants.client_id, grants.key_id, grants.scopes, grants.revoked_at'
const CODE = `
  SELECT codes.grant_id, codes.redirect_uri, codes.challenge, codes.expires_at, codes.used_at, ${OF_GRANT}
  FROM oauth_codes AS codes JOIN oauth_grants AS grants ON grants.id = codes.grant_id WHERE codes.hash = $1`
const REFRESH_TOKEN = `
  SELECT tokens.grant_id, tokens.expires_at, tokens.used_at, ${OF_GRANT}
  FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id
  WHERE tokens.hash = $1 AND tokens.kind = 'refresh'`
const TAKE_CODE = 'UPDATE oauth_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL'

/** Takes a code. `reused`: the second use has ended the grant. */
export async function redeemCode(
  change: Change,
  keys: SqlKeys,
  code: PresentedCode,
  made: NewTokens,
): Promise<Issued | 'invalid_grant' | 'reused'> {
  const { sql, now } = change
  const row = await first<CodeRow>(sql, CODE, [code.hash])
  const use = await useOf(change, row, code.clientId)
  if (!row || use === 'refused') return 'invalid_grant'
  if (use === 'reused') return use
  const isBound = row.redirect_uri === code.redirectUri && row.challenge === code.challenge
  if (!isBound || !(await keys.live(sql, row.key_id))) return 'invalid_grant'
  await sql.query(TAKE_CODE, [code.hash, now()])
  const scopes = scopesOf(row.scopes)
  await issueTokens(sql, row, scopes, made, now())
  return { scopes }
}

/** Takes a refresh token. `reused`: the second use has ended the grant. */
export async function refreshTokens(
  change: Change,
  keys: SqlKeys,
  { hash, clientId, scopes: wanted }: PresentedRefreshToken,
  made: NewTokens,
): Promise<Issued | 'invalid_grant' | 'invalid_scope' | 'reused'> {
  const { sql, now } = change
  const row = await first<PresentedRow>(sql, REFRESH_TOKEN, [hash])
  const use = await useOf(change, row, clientId)
  if (!row || use === 'refused') return 'invalid_grant'
  if (use === 'reused') return use
  if (!(await keys.live(sql, row.key_id))) return 'invalid_grant'
  const scopes = narrowed(scopesOf(row.scopes), wanted)
  if (!scopes) return 'invalid_scope'
  await takeToken(sql, hash, now())
  await issueTokens(sql, row, scopes, made, now())
  return { scopes }
}

/** Checks a presented row. A row of another client or of an ended grant is refused, and nothing changes. */
async function useOf(change: Change, row: PresentedRow | undefined, clientId: string) {
  if (!row || row.client_id !== clientId || row.revoked_at !== null) return 'refused'
  const use = presented({ usedAt: numberOf(row.used_at), expiresAt: Number(row.expires_at) }, change.now())
  if (use === 'reused') await endGrant(change, row.grant_id, actorOf(clientId))
  return use
}
