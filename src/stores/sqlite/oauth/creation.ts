/** New grants: by consent, with a code, and to clients that act for their own key. */
import type { Statement } from 'better-sqlite3'
import type { Actor, NewGrant, NewToken, OAuthClient } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { actorOf, keyNameOf, MAX_GRANTS_OF_KEY } from '../../rules/oauth.ts'
import { newSecret } from '../../secret.ts'
import { Undone } from '../../sql/audit.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'
import type { GrantEnds } from './ends.ts'
import type { LiveKeys } from './live-keys.ts'
import type { LoginCodes } from './login-codes.ts'
import type { GrantRecords } from './records.ts'
import type { Tokens } from './tokens.ts'

interface Dependencies {
  readonly keys: LiveKeys
  readonly records: GrantRecords
  readonly ends: GrantEnds
  readonly tokens: Tokens
  readonly logins: LoginCodes
}
interface GrantFacts {
  readonly client: Pick<OAuthClient, 'id' | 'name'>
  readonly keyId: string
  readonly scopes: readonly string[]
  readonly resource: string
  readonly madeKey: boolean
}

/** All methods are called within a transaction. */
export class GrantCreation {
  readonly #changes: AuditedTransaction
  readonly #uses: Dependencies
  readonly #client: Statement<[string], number>
  readonly #addGrant: Statement
  readonly #addCode: Statement
  readonly #addKey: Statement
  readonly #usedClient: Statement
  readonly #oldConsents: Statement<[string, string], string>
  readonly #oldOwn: Statement<[string, string], string>

  constructor(db: Sqlite, changes: AuditedTransaction, uses: Dependencies) {
    this.#changes = changes
    this.#uses = uses
    this.#client = db.prepare<[string], number>('SELECT 1 FROM oauth_clients WHERE id = ?').pluck()
    this.#addGrant = db.prepare(`
      INSERT INTO oauth_grants (id, client_id, client_name, key_id, scopes, resource, made_key, created_at)
      VALUES (@id, @clientId, @clientName, @keyId, @scopes, @resource, @madeKey, @now)`)
    this.#addCode = db.prepare(`
      INSERT INTO oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at)
      VALUES (@hash, @grant, @redirectUri, @challenge, @expiresAt)`)
    this.#addKey = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at)
      VALUES (@id, @project, @name, 'key', @hash, @preview, @member, @now)`)
    this.#usedClient = db.prepare('UPDATE oauth_clients SET used_at = ? WHERE id = ?')
    const beyond = `revoked_at IS NULL ORDER BY rowid DESC LIMIT -1 OFFSET ${MAX_GRANTS_OF_KEY - 1}`
    this.#oldConsents = db
      .prepare<[string, string], string>(`
        SELECT id FROM oauth_grants
        WHERE key_id = ? AND client_id NOT IN (SELECT id FROM oauth_clients WHERE key_id = ?) AND ${beyond}`)
      .pluck()
    this.#oldOwn = db
      .prepare<[string, string], string>(`SELECT id FROM oauth_grants WHERE key_id = ? AND client_id = ? AND ${beyond}`)
      .pluck()
  }

  /** Throws `Undone` when the proof or the client is no longer valid. */
  byConsent({ client, proof, scopes, resource, code }: NewGrant): void {
    if (client.isRegistered && this.#client.get(client.id) === undefined) throw new Undone()
    const madeKey = 'loginCode' in proof
    const keyId = madeKey ? this.#makeKey(proof.loginCode, client.name) : proof.keyId
    const principal = this.#uses.keys.live(keyId)
    if (!principal) throw new Undone()
    for (const old of this.#oldConsents.all(keyId, keyId)) this.#uses.ends.end(old, actorOf(client.id))
    const grant = this.#add({ client, keyId, scopes, resource, madeKey })
    this.#addCode.run({ ...code, grant })
    this.#usedClient.run(this.#changes.now(), client.id)
    this.#note(grant, principal.orgId)
  }

  /** A grant of a client that acts for its own key, and its token; false when the client or its key is no longer valid. */
  byClientCredentials(
    { id, name, keyId }: Pick<OAuthClient, 'id' | 'name' | 'keyId'>,
    scopes: readonly string[],
    resource: string,
    access: NewToken,
  ): boolean {
    const principal = keyId === null ? undefined : this.#uses.keys.live(keyId)
    if (keyId === null || !principal || this.#client.get(id) === undefined) return false
    for (const old of this.#oldOwn.all(keyId, id)) this.#uses.ends.end(old)
    const grant = this.#add({ client: { id, name }, keyId, scopes, resource, madeKey: false })
    this.#uses.tokens.issue({ grant_id: grant, client_id: id, scopes: scopes.join(' ') }, scopes, { access })
    this.#note(grant, principal.orgId, actorOf(id))
    return true
  }

  #add({ client, keyId, scopes, resource, madeKey }: GrantFacts): string {
    const id = shortId()
    const named = { clientId: client.id, clientName: client.name, scopes: scopes.join(' '), madeKey: madeKey ? 1 : 0 }
    this.#addGrant.run({ id, ...named, keyId, resource, now: this.#changes.now() })
    return id
  }

  /** Without an actor the member who made the key has consented, or its holder. */
  #note(grant: string, organization: string, actor?: Actor): void {
    const { record } = this.#uses.records.find(grant)!
    const by = actor ?? record.member ?? `key ${record.key}`
    this.#changes.note({ actor: by, action: 'oauth.grant', organization, subject: grant, was: null, became: record })
  }

  #makeKey(loginCode: string, clientName: string): string {
    const login = this.#uses.logins.take(loginCode)
    if (!login) throw new Undone()
    const id = shortId()
    // Its secret is dropped: only tokens stand for this key.
    const { hash, preview } = newSecret('key')
    const { member_id: member, project_id: project } = login
    this.#addKey.run({ id, project, name: keyNameOf(clientName), hash, preview, member, now: this.#changes.now() })
    return id
  }
}
