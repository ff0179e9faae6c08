/** Token requests: codes and refresh tokens are exchanged for new tokens, each once. */
import type { Statement } from 'better-sqlite3'
import type { Issued, NewTokens, PresentedCode, PresentedRefreshToken } from '../../../core/ports.ts'
import { actorOf, narrowed, presented, scopesOf } from '../../rules/oauth.ts'
import type { Sqlite } from '../open.ts'
import type { GrantEnds } from './ends.ts'
import type { LiveKeys } from './live-keys.ts'
import type { Tokens } from './tokens.ts'

interface PresentedRow {
  grant_id: string
  client_id: string
  key_id: string
  scopes: string
  revoked_at: number | null
  expires_at: number
  used_at: number | null
}
interface CodeRow extends PresentedRow {
  redirect_uri: string
  challenge: string
}

const OF_GRANT = 'grants.client_id, grants.key_id, grants.scopes, grants.revoked_at'

interface Dependencies {
  readonly keys: LiveKeys
  readonly ends: GrantEnds
  readonly tokens: Tokens
  readonly now: () => number
}

/** All methods are called within a transaction. `reused`: the second use has ended the grant. */
export class TokenRequests {
  readonly #uses: Dependencies
  readonly #code: Statement<[string], CodeRow>
  readonly #takeCode: Statement
  readonly #refreshToken: Statement<[string], PresentedRow>

  constructor(db: Sqlite, uses: Dependencies) {
    this.#uses = uses
    this.#code = db.prepare(`
      SELECT codes.grant_id, codes.redirect_uri, codes.challenge, codes.expires_at, codes.used_at, ${OF_GRANT}
      FROM oauth_codes AS codes JOIN oauth_grants AS grants ON grants.id = codes.grant_id WHERE codes.hash = ?`)
    this.#takeCode = db.prepare('UPDATE oauth_codes SET used_at = ? WHERE hash = ? AND used_at IS NULL')
    this.#refreshToken = db.prepare(`
      SELECT tokens.grant_id, tokens.expires_at, tokens.used_at, ${OF_GRANT}
      FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id
      WHERE tokens.hash = ? AND tokens.kind = 'refresh'`)
  }

  redeem(code: PresentedCode, made: NewTokens): Issued | 'invalid_grant' | 'reused' {
    const row = this.#code.get(code.hash)
    const use = this.#presented(row, code.clientId)
    if (!row || use === 'refused') return 'invalid_grant'
    if (use === 'reused') return use
    const isBound = row.redirect_uri === code.redirectUri && row.challenge === code.challenge
    if (!isBound || !this.#uses.keys.live(row.key_id)) return 'invalid_grant'
    this.#takeCode.run(this.#uses.now(), code.hash)
    const scopes = scopesOf(row.scopes)
    this.#uses.tokens.issue(row, scopes, made)
    return { scopes }
  }

  refresh(
    { hash, clientId, scopes: wanted }: PresentedRefreshToken,
    made: NewTokens,
  ): Issued | 'invalid_grant' | 'invalid_scope' | 'reused' {
    const row = this.#refreshToken.get(hash)
    const use = this.#presented(row, clientId)
    if (!row || use === 'refused') return 'invalid_grant'
    if (use === 'reused') return use
    if (!this.#uses.keys.live(row.key_id)) return 'invalid_grant'
    const scopes = narrowed(scopesOf(row.scopes), wanted)
    if (!scopes) return 'invalid_scope'
    this.#uses.tokens.take(hash)
    this.#uses.tokens.issue(row, scopes, made)
    return { scopes }
  }

  /** What another client presents, or what belongs to an ended grant, changes nothing. */
  #presented(row: PresentedRow | undefined, clientId: string) {
    if (!row || row.client_id !== clientId || row.revoked_at !== null) return 'refused'
    const use = presented({ usedAt: row.used_at, expiresAt: row.expires_at }, this.#uses.now())
    if (use === 'reused') this.#uses.ends.end(row.grant_id, actorOf(clientId))
    return use
  }
}
