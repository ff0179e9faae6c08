/** Operators' changes of compliance policies and custom providers. */
import type { Statement } from 'better-sqlite3'
import type { Compliance } from '../../core/policy.ts'
import type { Actor, ComplianceStore, ManifestRecord, ManifestStore } from '../../core/ports.ts'
import { noDemands } from '../../policy/compliance.ts'
import { checkManifests, noManifest } from '../rules/policies.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { ALL } from './page.ts'

/** `ComplianceStore` over `policies`; each change raises the version there. */
export class SqliteCompliance implements ComplianceStore {
  readonly #changes: AuditedTransaction
  readonly #show: Statement<[string], string | null>
  readonly #set: Statement

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#show = db.prepare<[string], string | null>('SELECT compliance FROM policies WHERE org_id = ?').pluck()
    this.#set = db.prepare(`
      INSERT INTO policies (org_id, version, compliance) VALUES (@org, 1, @compliance)
      ON CONFLICT (org_id) DO UPDATE SET version = version + 1, compliance = excluded.compliance`)
  }

  async show(organization: string): Promise<Compliance | null> {
    return this.#of(this.#changes.directory.organization(organization).id)
  }

  change(organization: string, changes: Partial<Compliance>, actor: Actor): Promise<Compliance> {
    return this.#replace(organization, actor, 'compliance.set', old => ({ ...noDemands, ...old, ...changes }))
  }

  async clear(organization: string, actor: Actor): Promise<void> {
    await this.#replace(organization, actor, 'compliance.clear', () => null)
  }

  #replace<T extends Compliance | null>(
    organization: string,
    actor: Actor,
    action: string,
    next: (old: Compliance | null) => T,
  ): Promise<T> {
    return this.#changes.run(() => {
      const org = this.#changes.directory.organization(organization).id
      const was = this.#of(org)
      const became = next(was)
      this.#set.run({ org, compliance: became && JSON.stringify(became) })
      this.#changes.note({ actor, action, organization: org, subject: org, was, became })
      return became
    })
  }

  #of(org: string): Compliance | null {
    const kept = this.#show.get(org)
    return kept == null ? null : (JSON.parse(kept) as Compliance)
  }
}

interface ManifestRow {
  organization: string
  provider: string
  manifest: string
  created_at: number
}

const MANIFESTS = `
  SELECT organizations.name AS organization, provider, manifest, manifests.created_at
  FROM manifests JOIN organizations ON organizations.id = manifests.org_id`

/** `ManifestStore` over `manifests`, by organization and provider. */
export class SqliteManifests implements ManifestStore {
  readonly #changes: AuditedTransaction
  readonly #put: Statement
  readonly #delete: Statement
  readonly #get: Statement<[string, string], ManifestRow>
  readonly #list: Statement<{ org: string | null; limit: number; offset: number }, ManifestRow>
  readonly #count: Statement<[string], number>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#put = db.prepare(`
      INSERT INTO manifests (org_id, provider, manifest, created_at) VALUES (@org, @provider, @manifest, @now)
      ON CONFLICT (org_id, provider) DO UPDATE SET manifest = excluded.manifest`)
    this.#delete = db.prepare('DELETE FROM manifests WHERE org_id = ? AND provider = ?')
    this.#get = db.prepare(`${MANIFESTS} WHERE org_id = ? AND provider = ?`)
    this.#list = db.prepare(`
      ${MANIFESTS} WHERE @org IS NULL OR org_id = @org ORDER BY organization, provider LIMIT @limit OFFSET @offset`)
    this.#count = db.prepare<[string], number>('SELECT count(*) FROM manifests WHERE org_id = ?').pluck()
  }

  put({ organization, provider, manifest }: Omit<ManifestRecord, 'createdAt'>, actor: Actor): Promise<ManifestRecord> {
    return this.#change(organization, provider, actor, 'models.custom.add', (org, old) => {
      if (!old) checkManifests(this.#count.get(org)!)
      this.#put.run({ org, provider, manifest, now: this.#changes.now() })
    })
  }

  async list(organization?: string, limit = ALL, offset = 0): Promise<ManifestRecord[]> {
    const org = organization === undefined ? null : this.#changes.directory.organization(organization).id
    return this.#list.all({ org, limit, offset }).map(recordOf)
  }

  remove(organization: string, provider: string, actor: Actor): Promise<ManifestRecord> {
    return this.#change(organization, provider, actor, 'models.custom.remove', (org, old) => {
      if (!old) throw noManifest(organization, provider)
      this.#delete.run(org, provider)
    })
  }

  /** Resolves with the new value, else with the old one. */
  #change(
    organization: string,
    provider: string,
    actor: Actor,
    action: string,
    work: (org: string, old: ManifestRow | undefined) => void,
  ): Promise<ManifestRecord> {
    return this.#changes.run(() => {
      const org = this.#changes.directory.organization(organization).id
      const before = this.#get.get(org, provider)
      work(org, before)
      const after = this.#get.get(org, provider)
      const [was, became] = [before && JSON.parse(before.manifest), after && JSON.parse(after.manifest)] as unknown[]
      this.#changes.note({ actor, action, organization: org, subject: provider, was, became })
      return recordOf((after ?? before)!)
    })
  }
}

const recordOf = (row: ManifestRow): ManifestRecord => ({
  organization: row.organization,
  provider: row.provider,
  manifest: row.manifest,
  createdAt: new Date(row.created_at).toISOString(),
})
