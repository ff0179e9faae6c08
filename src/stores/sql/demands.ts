/** Operators' changes of compliance policies and custom providers. */
import type { Compliance } from '../../core/policy.ts'
import type { Actor, ComplianceStore, ManifestRecord, ManifestStore } from '../../core/ports.ts'
import { noDemands } from '../../policy/compliance.ts'
import { checkManifests, noManifest } from '../rules/policies.ts'
import type { AuditedTransaction } from './audit.ts'
import { ALL, first, isoOf, type Sql } from './sql.ts'

const SET_COMPLIANCE = `
  INSERT INTO policies (org_id, version, compliance) VALUES ($1, 1, $2)
  ON CONFLICT (org_id) DO UPDATE SET version = policies.version + 1, compliance = excluded.compliance`

/** Makes the `ComplianceStore` over `policies`; each change raises the version there. */
export function sqlCompliance(changes: AuditedTransaction): ComplianceStore {
  const replace = <T extends Compliance | null>(
    organization: string,
    actor: Actor,
    action: string,
    next: (old: Compliance | null) => T,
  ): Promise<T> =>
    changes.run(async ({ sql, names, note }) => {
      const org = (await names.organization(organization)).id
      const was = await complianceIn(sql, org)
      const became = next(was)
      await sql.query(SET_COMPLIANCE, [org, became && JSON.stringify(became)])
      await note({ actor, action, organization: org, subject: org, was, became })
      return became
    })

  return {
    show: organization =>
      changes.read(async () => complianceIn(changes.sql, (await changes.names.organization(organization)).id)),

    change: (organization, demands, actor) =>
      replace(organization, actor, 'compliance.set', old => ({ ...noDemands, ...old, ...demands })),

    async clear(organization, actor) {
      await replace(organization, actor, 'compliance.clear', () => null)
    },
  }
}

async function complianceIn(sql: Sql, org: string): Promise<Compliance | null> {
  const text = 'SELECT compliance FROM policies WHERE org_id = $1'
  const row = await first<{ compliance: string | null }>(sql, text, [org])
  return row?.compliance == null ? null : (JSON.parse(row.compliance) as Compliance)
}

interface ManifestRow {
  organization: string
  provider: string
  manifest: string
  created_at: bigint
}

const MANIFESTS = `
  SELECT organizations.name AS organization, provider, manifest, manifests.created_at
  FROM manifests JOIN organizations ON organizations.id = manifests.org_id`
const PAGE = `
  ${MANIFESTS} WHERE CAST($1 AS text) IS NULL OR org_id = $1 ORDER BY organization, provider LIMIT $2 OFFSET $3`
const PUT = `
  INSERT INTO manifests (org_id, provider, manifest, created_at) VALUES ($1, $2, $3, $4)
  ON CONFLICT (org_id, provider) DO UPDATE SET manifest = excluded.manifest`
const COUNT = 'SELECT count(*) AS manifests FROM manifests WHERE org_id = $1'

/** Makes the `ManifestStore` over `manifests`, by organization and provider. */
export function sqlManifests(changes: AuditedTransaction): ManifestStore {
  /** Resolves with the new value, else with the old one. */
  const change = (
    organization: string,
    provider: string,
    actor: Actor,
    action: string,
    work: (sql: Sql, org: string, old: ManifestRow | undefined) => Promise<void>,
  ): Promise<ManifestRecord> =>
    changes.run(async ({ sql, names, note }) => {
      const org = (await names.organization(organization)).id
      const before = await manifestIn(sql, org, provider)
      await work(sql, org, before)
      const after = await manifestIn(sql, org, provider)
      const [was, became] = [before && JSON.parse(before.manifest), after && JSON.parse(after.manifest)] as unknown[]
      await note({ actor, action, organization: org, subject: provider, was, became })
      return recordOf((after ?? before)!)
    })

  return {
    put: ({ organization, provider, manifest }, actor) =>
      change(organization, provider, actor, 'models.custom.add', async (sql, org, old) => {
        if (!old) checkManifests(Number((await first<{ manifests: bigint }>(sql, COUNT, [org]))!.manifests))
        await sql.query(PUT, [org, provider, manifest, changes.now()])
      }),

    list: (organization, limit = ALL, offset = 0) =>
      changes.read(async () => {
        const org = await changes.names.organizationId(organization)
        return (await changes.sql.query<ManifestRow>(PAGE, [org, limit, offset])).map(recordOf)
      }),

    remove: (organization, provider, actor) =>
      change(organization, provider, actor, 'models.custom.remove', async (sql, org, old) => {
        if (!old) throw noManifest(organization, provider)
        await sql.query('DELETE FROM manifests WHERE org_id = $1 AND provider = $2', [org, provider])
      }),
  }
}

const manifestIn = (sql: Sql, org: string, provider: string): Promise<ManifestRow | undefined> =>
  first<ManifestRow>(sql, `${MANIFESTS} WHERE org_id = $1 AND provider = $2`, [org, provider])

const recordOf = (row: ManifestRow): ManifestRecord => ({
  organization: row.organization,
  provider: row.provider,
  manifest: row.manifest,
  createdAt: isoOf(row.created_at),
})
