/** Access and refresh tokens of grants. */
import type { Statement } from 'better-sqlite3'
import type { NewTokens } from '../../../core/ports.ts'
import { MAX_TOKENS_OF_GRANT } from '../../rules/oauth.ts'
import type { Sqlite } from '../open.ts'

/** Whose token it is. */
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

/** All methods are called within a transaction. */
export class Tokens {
  readonly #now: () => number
  readonly #add: Statement
  readonly #removeOldest: Statement
  readonly #owner: Statement<[string], TokenOwner>
  readonly #take: Statement
  readonly #usedGrant: Statement
  readonly #usedClient: Statement

  constructor(db: Sqlite, now: () => number) {
    this.#now = now
    this.#add = db.prepare(`
      INSERT INTO oauth_tokens (hash, kind, grant_id, scopes, expires_at)
      VALUES (@hash, @kind, @grant, @scopes, @expiresAt)`)
    this.#removeOldest = db.prepare(`
      DELETE FROM oauth_tokens WHERE rowid IN (
        SELECT rowid FROM oauth_tokens WHERE grant_id = @grant AND kind = @kind
        ORDER BY rowid DESC LIMIT -1 OFFSET ${MAX_TOKENS_OF_GRANT}
      )`)
    this.#owner = db.prepare(`
      SELECT tokens.kind, tokens.grant_id, grants.client_id
      FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id WHERE tokens.hash = ?`)
    this.#take = db.prepare('UPDATE oauth_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL')
    this.#usedGrant = db.prepare('UPDATE oauth_grants SET used_at = ? WHERE id = ?')
    this.#usedClient = db.prepare('UPDATE oauth_clients SET used_at = ? WHERE id = ?')
  }

  /** A refresh token has all scopes of its grant; `scopes` are those of the access token. */
  issue(grant: TokenGrant, scopes: readonly string[], { access, refresh }: NewTokens): void {
    const { grant_id: id, client_id, scopes: granted } = grant
    this.#add.run({ ...access, kind: 'access', grant: id, scopes: scopes.join(' ') })
    if (refresh) this.#add.run({ ...refresh, kind: 'refresh', grant: id, scopes: granted })
    for (const kind of ['access', 'refresh']) this.#removeOldest.run({ grant: id, kind })
    this.#usedGrant.run(this.#now(), id)
    this.#usedClient.run(this.#now(), client_id)
  }

  owner(hash: string): TokenOwner | undefined {
    return this.#owner.get(hash)
  }

  /** Makes a token used or revoked. */
  take(hash: string): void {
    this.#take.run(this.#now(), hash)
  }
}
