/** Provider keys of organizations in memory, sealed under a master key. */
import type { ProviderKeyRecord, ProviderKeyStore } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { type Keyring, placeOf } from '../../keyring.ts'
import { noSuch } from '../../rules/names.ts'
import { checkProviderKeys } from '../../rules/policies.ts'
import { attempt } from '../../sealing.ts'
import type { Limits } from './limits.ts'
import type { Names } from './names.ts'
import { changed } from './policies.ts'
import type { ProviderKeyRow } from './rows.ts'
import { iso, later, type Tables } from './tables.ts'

/** `keyring` is called when a key is first sealed or opened. */
export function providerKeyStore(
  tables: Tables,
  names: Names,
  limits: Limits,
  keyring: () => Keyring,
): ProviderKeyStore {
  const { providerKeys: keys, now } = tables
  const record = (key: ProviderKeyRow): ProviderKeyRecord => {
    const { id, orgId, provider, label, fingerprint, models, sealed, createdAt } = key
    return {
      ...{ id, provider, label, fingerprint, models, organization: tables.nameOf(orgId) },
      keyVersion: sealed.version,
      limits: limits.of(id),
      createdAt: iso(createdAt),
    }
  }
  const find = (id: string, organization: string | undefined): ProviderKeyRow => {
    const org = organization === undefined ? undefined : names.findOrganization(organization).id
    const key = keys.get(id)
    if (key && (org === undefined || key.orgId === org)) return key
    throw noSuch('provider key', id, organization)
  }
  return {
    async add({ organization, provider, label, secret, fingerprint, models = null, limit }, actor) {
      const ring = attempt(keyring)
      return tables.run(() => {
        const orgId = names.findOrganization(organization).id
        checkProviderKeys(keys.filter(key => key.orgId === orgId).length)
        const id = shortId()
        const sealed = ring.seal(secret, placeOf({ orgId, provider, id }))
        const made: ProviderKeyRow = { id, orgId, provider, label, fingerprint, models, sealed, createdAt: now() }
        keys.set(id, made)
        if (limit) limits.change('provider-key', id, { set: limit })
        changed(tables, orgId)
        const became = record(made)
        tables.note({ actor, action: 'provider-keys.add', organization: orgId, subject: id, was: undefined, became })
        return became
      })
    },
    async list(organization, page) {
      const orgId = organization === undefined ? undefined : names.findOrganization(organization).id
      const found = keys.filter(key => orgId === undefined || key.orgId === orgId)
      return later(found, page).slice(0, page?.limit).map(record)
    },
    update: (id, organization, { label, models, limit }, actor) =>
      tables.run(() => {
        const old = find(id, organization)
        const was = record(old)
        const next = { ...old, label: label ?? old.label, models: models === undefined ? old.models : models }
        keys.set(id, next)
        if (limit) limits.change('provider-key', id, limit)
        changed(tables, old.orgId)
        const became = record(next)
        tables.note({ actor, action: 'provider-keys.update', organization: old.orgId, subject: id, was, became })
        return became
      }),
    remove: (id, organization, actor) =>
      tables.run(() => {
        const old = find(id, organization)
        const was = record(old)
        limits.forget(id)
        keys.delete(id)
        changed(tables, old.orgId)
        const action = 'provider-keys.remove'
        tables.note({ actor, action, organization: old.orgId, subject: id, was, became: undefined })
        return was
      }),
  }
}
