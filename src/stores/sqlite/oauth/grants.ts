/** Grants, their codes and their tokens. Each step is one transaction, so that of many at once exactly one succeeds. */
import type { Statement } from 'better-sqlite3'
import type {
  Actor,
  GrantRecord,
  Issued,
  LoginCodeInput,
  LoginCodeRecord,
  NewGrant,
  NewToken,
  NewTokens,
  OAuthClient,
  OAuthGrantStore,
  PresentedCode,
  PresentedRefreshToken,
} from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import {
  actorOf,
  keyNameOf,
  MAX_GRANTS_OF_KEY,
  MAX_TOKENS_OF_GRANT,
  narrowed,
  noSuchGrant,
  presented,
  scopesOf,
} from '../../rules/oauth.ts'
import { newSecret } from '../../secret.ts'
import { type AuditedTransaction, Undone } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'
import { type PageRow, pageOf } from '../page.ts'
import { GRANTS, type GrantEnds, type GrantRow, type LiveKeys, recordOf } from './ends.ts'
import { LoginCodes } from './login-codes.ts'
import { OAuthSweep } from './sweep.ts'

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

const PRESENTED = 'grants.client_id, grants.key_id, grants.scopes, grants.revoked_at'

export class SqliteOAuthGrants implements OAuthGrantStore {
  readonly #changes: AuditedTransaction
  readonly #keys: LiveKeys
  readonly #ends: GrantEnds
  readonly #logins: LoginCodes
  readonly #swept: OAuthSweep
  readonly #client: Statement<[string], number>
  readonly #addGrant: Statement
  readonly #addCode: Statement
  readonly #addKey: Statement
  readonly #addToken: Statement
  readonly #code: Statement<[string], CodeRow>
  readonly #takeCode: Statement
  readonly #refreshToken: Statement<[string], PresentedRow>
  readonly #takeToken: Statement
  readonly #ofClient: Statement<[string], { kind: 'access' | 'refresh'; grant_id: string; client_id: string }>
  readonly #usedGrant: Statement
  readonly #usedClient: Statement
  readonly #oldTokens: Statement
  readonly #oldConsents: Statement<[string, string], string>
  readonly #oldOwn: Statement<[string, string], string>
  readonly #list: Statement<PageRow & { org: string | null; key: string | null; now: number }, GrantRow>

  constructor(db: Sqlite, changes: AuditedTransaction, keys: LiveKeys, ends: GrantEnds) {
    this.#changes = changes
    this.#keys = keys
    this.#ends = ends
    this.#logins = new LoginCodes(db, changes)
    this.#swept = new OAuthSweep(db, ends)
    this.#client = db.prepare<[string], number>('SELECT 1 FROM oauth_clients WHERE id = ?').pluck()
    this.#addGrant = db.prepare(`
      INSERT INTO oauth_grants (id, client_id, client_name, key_id, scopes, resource, made_key, created_at, used_at)
      VALUES (@id, @clientId, @clientName, @keyId, @scopes, @resource, @madeKey, @now, @usedAt)`)
    this.#addCode = db.prepare(`
      INSERT INTO oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at)
      VALUES (@hash, @grant, @redirectUri, @challenge, @expiresAt)`)
    this.#addKey = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at)
      VALUES (@id, @project, @name, 'key', @hash, @preview, @member, @now)`)
    this.#addToken = db.prepare(`
      INSERT INTO oauth_tokens (hash, kind, grant_id, scopes, expires_at)
      VALUES (@hash, @kind, @grant, @scopes, @expiresAt)`)
    this.#code = db.prepare(`
      SELECT codes.grant_id, codes.redirect_uri, codes.challenge, codes.expires_at, codes.used_at, ${PRESENTED}
      FROM oauth_codes AS codes JOIN oauth_grants AS grants ON grants.id = codes.grant_id WHERE codes.hash = ?`)
    this.#takeCode = db.prepare('UPDATE oauth_codes SET used_at = ? WHERE hash = ? AND used_at IS NULL')
    this.#refreshToken = db.prepare(`
      SELECT tokens.grant_id, tokens.expires_at, tokens.used_at, ${PRESENTED}
      FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id
      WHERE tokens.hash = ? AND tokens.kind = 'refresh'`)
    this.#takeToken = db.prepare('UPDATE oauth_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL')
    this.#ofClient = db.prepare(`
      SELECT tokens.kind, tokens.grant_id, grants.client_id
      FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id WHERE tokens.hash = ?`)
    this.#usedGrant = db.prepare('UPDATE oauth_grants SET used_at = ? WHERE id = ?')
    this.#usedClient = db.prepare('UPDATE oauth_clients SET used_at = ? WHERE id = ?')
    this.#oldTokens = db.prepare(`
      DELETE FROM oauth_tokens WHERE rowid IN (
        SELECT rowid FROM oauth_tokens WHERE grant_id = @grant AND kind = @kind
        ORDER BY rowid DESC LIMIT -1 OFFSET ${MAX_TOKENS_OF_GRANT}
      )`)
    const others = `revoked_at IS NULL ORDER BY rowid DESC LIMIT -1 OFFSET ${MAX_GRANTS_OF_KEY - 1}`
    this.#oldConsents = db
      .prepare<[string, string], string>(`
        SELECT id FROM oauth_grants
        WHERE key_id = ? AND client_id NOT IN (SELECT id FROM oauth_clients WHERE key_id = ?) AND ${others}`)
      .pluck()
    this.#oldOwn = db
      .prepare<[string, string], string>(`SELECT id FROM oauth_grants WHERE key_id = ? AND client_id = ? AND ${others}`)
      .pluck()
    this.#list = db.prepare(`
      ${GRANTS}
      WHERE grants.revoked_at IS NULL AND (@org IS NULL OR projects.org_id = @org) AND (@key IS NULL OR keys.id = @key)
        AND keys.revoked_at IS NULL AND (keys.expires_at IS NULL OR keys.expires_at > @now)
        AND (
          EXISTS (
            SELECT 1 FROM oauth_tokens WHERE grant_id = grants.id AND used_at IS NULL AND expires_at > @now
          ) OR EXISTS (
            SELECT 1 FROM oauth_codes WHERE grant_id = grants.id AND used_at IS NULL AND expires_at > @now
          )
        )
        AND grants.rowid > CASE WHEN @after IS NULL THEN 0
          ELSE coalesce((SELECT rowid FROM oauth_grants WHERE id = @after), 0) END
      ORDER BY grants.rowid LIMIT @limit`)
  }

  addLoginCode(input: LoginCodeInput, actor: Actor): Promise<LoginCodeRecord> {
    return this.#changes.write(() => this.#logins.add(input, actor))
  }

  async begin({ client, proof, scopes, resource, code }: NewGrant): Promise<boolean> {
    try {
      await this.#changes.run(() => {
        if (client.isRegistered && this.#client.get(client.id) === undefined) throw new Undone()
        const madeKey = 'loginCode' in proof
        const keyId = madeKey ? this.#makeKey(proof.loginCode, client.name) : proof.keyId
        const principal = this.#keys.live(keyId)
        if (!principal) throw new Undone()
        for (const old of this.#oldConsents.all(keyId, keyId)) this.#ends.end(old, actorOf(client.id))
        const grant = this.#grant({ client, keyId, scopes, resource, madeKey, usedAt: null })
        this.#addCode.run({ ...code, grant })
        this.#usedClient.run(this.#changes.now(), client.id)
        const became = recordOf(this.#ends.find(grant)!)
        const actor = became.member ?? `key ${keyId}`
        const note = { actor, action: 'oauth.grant', organization: principal.orgId, subject: grant }
        this.#changes.note({ ...note, was: null, became })
      })
      return true
    } catch (thrown) {
      if (thrown instanceof Undone) return false
      throw thrown
    }
  }

  async redeem(code: PresentedCode, tokens: NewTokens): Promise<Issued | 'invalid_grant'> {
    const redeemed = await this.#changes.write(() => {
      const now = this.#changes.now()
      const row = this.#code.get(code.hash)
      if (!row || row.client_id !== code.clientId || row.revoked_at !== null) return 'invalid_grant'
      const use = presented({ usedAt: row.used_at, expiresAt: row.expires_at }, now)
      if (use === 'reused') return this.#reused(row)
      const isBound = row.redirect_uri === code.redirectUri && row.challenge === code.challenge
      if (use === 'refused' || !isBound || !this.#keys.live(row.key_id)) return 'invalid_grant'
      this.#takeCode.run(now, code.hash)
      const scopes = scopesOf(row.scopes)
      this.#issue(row, scopes, tokens)
      return { scopes }
    })
    return this.#told(redeemed)
  }

  async refresh(
    { hash, clientId, scopes: wanted }: PresentedRefreshToken,
    tokens: NewTokens,
  ): Promise<Issued | 'invalid_grant' | 'invalid_scope'> {
    const refreshed = await this.#changes.write(() => {
      const now = this.#changes.now()
      const row = this.#refreshToken.get(hash)
      if (!row || row.client_id !== clientId || row.revoked_at !== null) return 'invalid_grant'
      const use = presented({ usedAt: row.used_at, expiresAt: row.expires_at }, now)
      if (use === 'reused') return this.#reused(row)
      if (use === 'refused' || !this.#keys.live(row.key_id)) return 'invalid_grant'
      const scopes = narrowed(scopesOf(row.scopes), wanted)
      if (!scopes) return 'invalid_scope'
      this.#takeToken.run(now, hash)
      this.#issue(row, scopes, tokens)
      return { scopes }
    })
    return this.#told(refreshed)
  }

  issue(
    { id, name, keyId }: Pick<OAuthClient, 'id' | 'name' | 'keyId'>,
    scopes: readonly string[],
    resource: string,
    access: NewToken,
  ): Promise<boolean> {
    return this.#changes.run(() => {
      const principal = keyId === null ? undefined : this.#keys.live(keyId)
      if (keyId === null || !principal || this.#client.get(id) === undefined) return false
      const now = this.#changes.now()
      for (const old of this.#oldOwn.all(keyId, id)) this.#ends.end(old)
      const client = { id, name }
      const grant = this.#grant({ client, keyId, scopes, resource, madeKey: false, usedAt: now })
      this.#issue({ grant_id: grant, client_id: id, scopes: scopes.join(' ') }, scopes, { access })
      const became = recordOf(this.#ends.find(grant)!)
      const note = { actor: actorOf(id), action: 'oauth.grant', organization: principal.orgId, subject: grant }
      this.#changes.note({ ...note, was: null, became })
      return true
    })
  }

  revokeToken(hash: string, clientId: string): Promise<void> {
    return this.#changes.run(() => {
      const row = this.#ofClient.get(hash)
      if (row?.client_id !== clientId) return
      if (row.kind === 'refresh') this.#ends.end(row.grant_id, actorOf(clientId))
      else this.#takeToken.run(this.#changes.now(), hash)
    })
  }

  async list(query: Parameters<OAuthGrantStore['list']>[0]): Promise<GrantRecord[]> {
    const { directory, now } = this.#changes
    const org = query.organization === undefined ? null : directory.organization(query.organization).id
    const key = query.key === undefined ? null : directory.key(query.key)
    return this.#list.all({ org, key, now: now(), ...pageOf(query) }).map(recordOf)
  }

  revoke(id: string, actor: Actor): Promise<GrantRecord> {
    return this.#changes.run(() => {
      const row = this.#ends.find(id)
      if (!row) throw noSuchGrant(id)
      this.#ends.end(id, actor)
      return recordOf(row)
    })
  }

  sweep(): Promise<number> {
    return this.#changes.run(() => this.#swept.run(this.#changes.now()))
  }

  #makeKey(loginCode: string, clientName: string): string {
    const login = this.#logins.take(loginCode)
    if (!login) throw new Undone()
    const id = shortId()
    // Its secret is dropped: only tokens stand for this key.
    const { hash, preview } = newSecret('key')
    const { member_id: member, project_id: project } = login
    this.#addKey.run({ id, project, name: keyNameOf(clientName), hash, preview, member, now: this.#changes.now() })
    return id
  }

  #grant(facts: {
    client: { id: string; name: string }
    keyId: string
    scopes: readonly string[]
    resource: string
    madeKey: boolean
    usedAt: number | null
  }): string {
    const id = shortId()
    const { client, keyId, scopes, resource, madeKey, usedAt } = facts
    const named = { clientId: client.id, clientName: client.name, scopes: scopes.join(' '), madeKey: madeKey ? 1 : 0 }
    this.#addGrant.run({ id, ...named, keyId, resource, usedAt, now: this.#changes.now() })
    return id
  }

  /** A refresh token has all scopes of its grant, whatever its access token has. */
  #issue(
    { grant_id: grant, client_id, scopes: granted }: Pick<PresentedRow, 'grant_id' | 'client_id' | 'scopes'>,
    scopes: readonly string[],
    { access, refresh }: NewTokens,
  ): void {
    const now = this.#changes.now()
    this.#addToken.run({ ...access, kind: 'access', grant, scopes: scopes.join(' ') })
    if (refresh) this.#addToken.run({ ...refresh, kind: 'refresh', grant, scopes: granted })
    for (const kind of ['access', 'refresh']) this.#oldTokens.run({ grant, kind })
    this.#usedGrant.run(now, grant)
    this.#usedClient.run(now, client_id)
  }

  #reused({ grant_id, client_id }: PresentedRow): 'reused' {
    this.#ends.end(grant_id, actorOf(client_id))
    return 'reused'
  }

  /** Principals of tokens are kept in memory; those of a grant that has ended are forgotten. */
  #told<T>(result: T | 'reused'): T | 'invalid_grant' {
    if (result !== 'reused') return result as T
    this.#changes.keysChanged()
    return 'invalid_grant'
  }
}
