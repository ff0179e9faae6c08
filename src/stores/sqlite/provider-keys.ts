/** Provider keys of organizations: sealed under a master key, decrypted only for use. */
import type { Statement } from 'better-sqlite3'
import type {
  Actor,
  NewProviderKey,
  Page,
  ProviderKeyChanges,
  ProviderKeyRecord,
  ProviderKeyStore,
} from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { type Keyring, placeOf } from '../keyring.ts'
import { noSuch } from '../rules/names.ts'
import { checkProviderKeys } from '../rules/policies.ts'
import { attempt } from '../sealing.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import { Limits } from './limits.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'

interface KeyRow {
  id: string
  org_id: string
  organization: string
  provider: string
  label: string
  fingerprint: string
  master_key: string
  models: string | null
  created_at: number
}

const KEYS = `
  SELECT provider_keys.id, org_id, organizations.name AS organization, provider, label, fingerprint, master_key, models,
    provider_keys.created_at
  FROM provider_keys JOIN organizations ON organizations.id = provider_keys.org_id`

/** `ProviderKeyStore` over `provider_keys`. Records show a preview and a fingerprint, never the key. */
export class SqliteProviderKeys implements ProviderKeyStore {
  readonly #changes: AuditedTransaction
  readonly #keyring: () => Keyring
  readonly #limits: Limits
  readonly #insert: Statement
  readonly #update: Statement
  readonly #delete: Statement
  readonly #byId: Statement<[string], KeyRow>
  readonly #list: Statement<PageRow & { org: string | null }, KeyRow>
  readonly #count: Statement<[string], number>

  /** Opens the keyring when it is first needed. */
  constructor(db: Sqlite, changes: AuditedTransaction, keyring: () => Keyring) {
    this.#changes = changes
    this.#keyring = keyring
    this.#limits = new Limits(db, changes.now)
    this.#insert = db.prepare(`
      INSERT INTO provider_keys
        (id, org_id, provider, label, fingerprint, master_key, nonce, ciphertext, models, created_at)
      VALUES (@id, @org, @provider, @label, @fingerprint, @version, @nonce, @ciphertext, @models, @now)`)
    this.#update = db.prepare('UPDATE provider_keys SET label = @label, models = @models WHERE id = @id')
    this.#delete = db.prepare('DELETE FROM provider_keys WHERE id = ?')
    this.#byId = db.prepare(`${KEYS} WHERE provider_keys.id = ?`)
    this.#list = db.prepare(`
      ${KEYS}
      WHERE (@org IS NULL OR org_id = @org) AND provider_keys.id > coalesce(@after, '')
      ORDER BY provider_keys.id LIMIT @limit`)
    this.#count = db.prepare<[string], number>('SELECT count(*) FROM provider_keys WHERE org_id = ?').pluck()
  }

  async add(input: NewProviderKey, actor: Actor): Promise<ProviderKeyRecord> {
    const { organization, provider, label, secret, fingerprint, models = null, limit } = input
    const keyring = this.#ring()
    return this.#changes.run(() => {
      const org = this.#changes.directory.organization(organization).id
      checkProviderKeys(this.#count.get(org)!)
      const id = shortId()
      const sealed = keyring.seal(secret, placeOf({ orgId: org, provider, id }))
      const facts = { id, org, provider, label, fingerprint, models: written(models) }
      this.#insert.run({ ...facts, ...sealed, now: this.#changes.now() })
      if (limit) this.#limits.change('provider-key', id, { set: limit })
      const row = this.#row(id)
      const became = this.#record(row)
      this.#note('provider-keys.add', actor, row, undefined, became)
      return became
    })
  }

  async list(organization?: string, page?: Page): Promise<ProviderKeyRecord[]> {
    const org = organization === undefined ? null : this.#changes.directory.organization(organization).id
    return this.#list.all({ org, ...pageOf(page) }).map(row => this.#record(row))
  }

  update(
    id: string,
    organization: string | undefined,
    { label, models, limit }: ProviderKeyChanges,
    actor: Actor,
  ): Promise<ProviderKeyRecord> {
    return this.#changes.run(() => {
      const row = this.#row(id, organization)
      const was = this.#record(row)
      // Also when only a limit changes: it raises the version of the policy.
      this.#update.run({
        id,
        label: label ?? row.label,
        models: models === undefined ? row.models : written(models),
      })
      if (limit) this.#limits.change('provider-key', id, limit)
      const became = this.#record(this.#row(id))
      this.#note('provider-keys.update', actor, row, was, became)
      return became
    })
  }

  remove(id: string, organization: string | undefined, actor: Actor): Promise<ProviderKeyRecord> {
    return this.#changes.run(() => {
      const row = this.#row(id, organization)
      const was = this.#record(row)
      this.#limits.forget(id)
      this.#delete.run(id)
      this.#note('provider-keys.remove', actor, row, was, undefined)
      return was
    })
  }

  #ring(): Keyring {
    return attempt(this.#keyring)
  }

  #row(id: string, organization?: string): KeyRow {
    const org = organization === undefined ? undefined : this.#changes.directory.organization(organization).id
    const row = this.#byId.get(id)
    if (row && (org === undefined || row.org_id === org)) return row
    throw noSuch('provider key', id, organization)
  }

  #record(row: KeyRow): ProviderKeyRecord {
    return {
      id: row.id,
      organization: row.organization,
      provider: row.provider,
      label: row.label,
      fingerprint: row.fingerprint,
      keyVersion: row.master_key,
      models: row.models === null ? null : (JSON.parse(row.models) as string[]),
      limits: this.#limits.of(row.id),
      createdAt: new Date(row.created_at).toISOString(),
    }
  }

  #note(action: string, actor: Actor, row: KeyRow, was: unknown, became: unknown): void {
    this.#changes.note({ actor, action, organization: row.org_id, subject: row.id, was, became })
  }
}

const written = (models: readonly string[] | null): string | null => models && JSON.stringify(models)
