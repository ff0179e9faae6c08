/** Provider keys of organizations: sealed under a master key, decrypted only for use. */
import type { KeyLoad } from '../../core/policy.ts'
import type { Actor, ProviderKeyChanges, ProviderKeyRecord, ProviderKeyStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { type Keyring, placeOf } from '../keyring.ts'
import { noSuch } from '../rules/names.ts'
import { checkProviderKeys } from '../rules/policies.ts'
import { attempt } from '../sealing.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { changeLimit, forgetLimits, limitsOf } from './limits.ts'
import { first, isoOf, pageOf } from './sql.ts'

interface KeyRow {
  id: string
  org_id: string
  organization: string
  provider: string
  label: string
  fingerprint: string
  master_key: string
  models: string | null
  load: string | null
  created_at: bigint
}

const ROWS = `
  SELECT provider_keys.id, org_id, organizations.name AS organization, provider, label, fingerprint, master_key, models, load,
    provider_keys.created_at
  FROM provider_keys JOIN organizations ON organizations.id = provider_keys.org_id`
const PAGE = `
  ${ROWS}
  WHERE (CAST($1 AS text) IS NULL OR org_id = $1) AND provider_keys.id > coalesce(CAST($2 AS text), '')
  ORDER BY provider_keys.id LIMIT $3`
const INSERT = `
  INSERT INTO provider_keys
    (id, org_id, provider, label, fingerprint, master_key, nonce, ciphertext, models, load, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
const COUNT = 'SELECT count(*) AS keys FROM provider_keys WHERE org_id = $1'

/**
 * Makes the `ProviderKeyStore` over `provider_keys`. Records show a preview and a fingerprint, never the key. The keyring
 * is opened when it is first needed.
 */
export const sqlProviderKeys = (changes: AuditedTransaction, keyring: () => Keyring): ProviderKeyStore => ({
  async add(input, actor) {
    const { organization, provider, label, secret, fingerprint, models = null, limit, load = {} } = input
    const ring = attempt(keyring)
    return changes.run(async change => {
      const { sql, names } = change
      const now = change.now()
      const org = (await names.organization(organization)).id
      checkProviderKeys(Number((await first<{ keys: bigint }>(sql, COUNT, [org]))!.keys))
      const id = shortId()
      const { version, nonce, ciphertext } = ring.seal(secret, placeOf({ orgId: org, provider, id }))
      const facts = [id, org, provider, label, fingerprint, version, nonce, ciphertext, textOf(models), loadText(load)]
      await sql.query(INSERT, [...facts, now])
      if (limit) await changeLimit(sql, 'provider-key', id, { set: limit }, now)
      const row = await rowIn(change, id)
      const became = await recordOf(change, row)
      await note(change, 'provider-keys.add', actor, row, undefined, became)
      return became
    })
  },

  list(organization, page) {
    const { after, limit } = pageOf(page)
    const { sql, names } = changes
    return changes.read(async () => {
      const rows = await sql.query<KeyRow>(PAGE, [await names.organizationId(organization), after, limit])
      return Promise.all(rows.map(row => recordOf(changes, row)))
    })
  },

  update: (id, organization, { label, models, limit, load = {} }, actor) =>
    changes.run(async change => {
      const { sql } = change
      const row = await rowIn(change, id, organization)
      const was = await recordOf(change, row)
      const kept = models === undefined ? row.models : textOf(models)
      // Also when only a limit changes: it raises the version of the policy.
      const shares = loadText(Object.assign(loadOf(row), load))
      const values = [id, label ?? row.label, kept, shares]
      await sql.query('UPDATE provider_keys SET label = $2, models = $3, load = $4 WHERE id = $1', values)
      if (limit) await changeLimit(sql, 'provider-key', id, limit, change.now())
      const became = await recordOf(change, await rowIn(change, id))
      await note(change, 'provider-keys.update', actor, row, was, became)
      return became
    }),

  remove: (id, organization, actor) =>
    changes.run(async change => {
      const { sql } = change
      const row = await rowIn(change, id, organization)
      const was = await recordOf(change, row)
      await forgetLimits(sql, id)
      await sql.query('DELETE FROM provider_keys WHERE id = $1', [id])
      await note(change, 'provider-keys.remove', actor, row, was, undefined)
      return was
    }),
})

const recordOf = async ({ sql, now }: Pick<Change, 'sql' | 'now'>, row: KeyRow): Promise<ProviderKeyRecord> => ({
  id: row.id,
  organization: row.organization,
  provider: row.provider,
  label: row.label,
  fingerprint: row.fingerprint,
  keyVersion: row.master_key,
  models: row.models === null ? null : (JSON.parse(row.models) as string[]),
  limits: await limitsOf(sql, row.id, now()),
  createdAt: isoOf(row.created_at),
  ...loadOf(row),
})

async function rowIn({ sql, names }: Change, id: string, organization?: string): Promise<KeyRow> {
  const org = await names.organizationId(organization)
  const row = await first<KeyRow>(sql, `${ROWS} WHERE provider_keys.id = $1`, [id])
  if (row && (org === null || row.org_id === org)) return row
  throw noSuch('provider key', id, organization)
}

const note = (change: Change, action: string, actor: Actor, row: KeyRow, was: unknown, became: unknown) =>
  change.note({ actor, action, organization: row.org_id, subject: row.id, was, became })

/** Reads what `loadText` has written. */
export const loadOf = ({ load }: { readonly load: string | null }): KeyLoad =>
  load === null ? {} : (JSON.parse(load) as KeyLoad)

function loadText(load: NonNullable<ProviderKeyChanges['load']>): string | null {
  const set = Object.entries(load).filter(([, value]) => value != null)
  return set.length === 0 ? null : JSON.stringify(Object.fromEntries(set))
}

const textOf = (models: readonly string[] | null): string | null => models && JSON.stringify(models)
