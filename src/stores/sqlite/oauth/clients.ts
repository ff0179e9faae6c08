/** Clients that registered by themselves, and those that the operator made. */
import type { Statement } from 'better-sqlite3'
import type {
  Actor,
  ClientAuthentication,
  ClientRecord,
  GrantType,
  NewClient,
  OAuthClient,
  OAuthClientStore,
  Page,
} from '../../../core/ports.ts'
import {
  clientRecord,
  clientsFull,
  MAX_CLIENTS,
  MAX_CLIENTS_OF_KEY,
  noSuchClient,
  notRegular,
  scopesOf,
  tooManyOfKey,
} from '../../rules/oauth.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { Sqlite } from '../open.ts'
import { type PageRow, pageOf } from '../page.ts'
import type { GrantEnds } from './ends.ts'
import type { LiveKeys } from './live-keys.ts'

interface ClientRow {
  id: string
  name: string
  redirect_uris: string
  grant_types: string
  method: ClientAuthentication
  secret_hash: string | null
  scopes: string
  key_id: string | null
  created_at: number
  used_at: number | null
}

/** `OAuthClientStore` over `oauth_clients`; a client that is removed loses its grants. */
export class SqliteOAuthClients implements OAuthClientStore {
  readonly #changes: AuditedTransaction
  readonly #keys: LiveKeys
  readonly #ends: GrantEnds
  readonly #insert: Statement
  readonly #find: Statement<[string], ClientRow>
  readonly #list: Statement<PageRow, ClientRow>
  readonly #count: Statement<[], number>
  readonly #countOfKey: Statement<[string], number>
  readonly #dropIdle: Statement
  readonly #grants: Statement<[string], string>
  readonly #delete: Statement

  constructor(db: Sqlite, changes: AuditedTransaction, keys: LiveKeys, ends: GrantEnds) {
    this.#changes = changes
    this.#keys = keys
    this.#ends = ends
    this.#insert = db.prepare(`
      INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, method, secret_hash, scopes, key_id, created_at)
      VALUES (@id, @name, @redirectUris, @grantTypes, @method, @secretHash, @scopes, @keyId, @now)`)
    this.#find = db.prepare('SELECT * FROM oauth_clients WHERE id = ?')
    this.#list = db.prepare(`
      SELECT * FROM oauth_clients
      WHERE rowid > CASE WHEN @after IS NULL THEN 0 ELSE coalesce((SELECT rowid FROM oauth_clients WHERE id = @after), 0) END
      ORDER BY rowid LIMIT @limit`)
    this.#count = db.prepare<[], number>('SELECT count(*) FROM oauth_clients').pluck()
    this.#countOfKey = db.prepare<[string], number>('SELECT count(*) FROM oauth_clients WHERE key_id = ?').pluck()
    this.#dropIdle = db.prepare(`
      DELETE FROM oauth_clients WHERE id IN (
        SELECT id FROM oauth_clients
        WHERE key_id IS NULL AND NOT EXISTS (
          SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id AND revoked_at IS NULL
        )
        ORDER BY used_at IS NOT NULL, coalesce(used_at, created_at) LIMIT 1
      )`)
    this.#grants = db
      .prepare<[string], string>('SELECT id FROM oauth_grants WHERE client_id = ? AND revoked_at IS NULL')
      .pluck()
    this.#delete = db.prepare('DELETE FROM oauth_clients WHERE id = ?')
  }

  register(client: NewClient): Promise<void> {
    return this.#changes.write(() => {
      if (client.keyId !== null && !this.#keys.live(client.keyId)) throw notRegular(client.keyId)
      this.#add(client)
    })
  }

  async find(id: string): Promise<OAuthClient | undefined> {
    return this.#changes.read(() => {
      const row = this.#find.get(id)
      return row && clientOf(row)
    })
  }

  create(client: NewClient & { readonly keyId: string }, actor: Actor): Promise<ClientRecord> {
    return this.#changes.write(() => {
      const keyId = this.#changes.directory.key(client.keyId)
      const principal = this.#keys.live(keyId)
      if (!principal) throw notRegular(keyId)
      this.#add(client)
      const became = this.#record(client.id)
      const note = { actor, action: 'oauth.clients.create', organization: principal.orgId, subject: client.id }
      this.#changes.note({ ...note, was: null, became })
      return became
    })
  }

  async list(page?: Page): Promise<ClientRecord[]> {
    return this.#list.all(pageOf(page)).map(row => clientRecord(clientOf(row)))
  }

  remove(id: string, actor: Actor): Promise<ClientRecord> {
    return this.#changes.run(() => {
      const was = this.#record(id)
      for (const grant of this.#grants.all(id)) this.#ends.end(grant, actor)
      this.#delete.run(id)
      const organization = was.key === null ? null : (this.#keys.organizationOf(was.key) ?? null)
      this.#changes.note({ actor, action: 'oauth.clients.remove', organization, subject: id, was, became: null })
      return was
    })
  }

  #add(client: NewClient): void {
    if (client.keyId !== null && this.#countOfKey.get(client.keyId)! >= MAX_CLIENTS_OF_KEY) throw tooManyOfKey()
    if (this.#count.get()! >= MAX_CLIENTS && this.#dropIdle.run().changes === 0) throw clientsFull()
    const { redirectUris, grantTypes, scopes, ...rest } = client
    this.#insert.run({
      ...rest,
      redirectUris: JSON.stringify(redirectUris),
      grantTypes: JSON.stringify(grantTypes),
      scopes: scopes.join(' '),
      now: this.#changes.now(),
    })
  }

  #record(id: string): ClientRecord {
    const row = this.#find.get(id)
    if (!row) throw noSuchClient(id)
    return clientRecord(clientOf(row))
  }
}

const clientOf = (row: ClientRow): OAuthClient => ({
  id: row.id,
  name: row.name,
  redirectUris: JSON.parse(row.redirect_uris) as string[],
  grantTypes: JSON.parse(row.grant_types) as GrantType[],
  method: row.method,
  secretHash: row.secret_hash,
  scopes: scopesOf(row.scopes),
  keyId: row.key_id,
  createdAt: row.created_at,
  usedAt: row.used_at,
})
