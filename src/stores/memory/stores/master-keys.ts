/** Changes of the master key in memory. Responses and jobs are not sealed here: they are never at rest. */
import type { MasterKeyStore } from '../../../core/ports.ts'
import { type Keyring, placeOf } from '../../keyring.ts'
import { placeOfSession } from '../../rules/realtime.ts'
import { ReencryptionTally } from '../../rules/reencryption.ts'
import { attempt, resealed, resealedText, versionOf } from '../../sealing.ts'
import { changed } from './policies.ts'
import type { Tables } from './tables.ts'

/** Seals provider keys and realtime secrets anew, in one transaction. */
export function masterKeyStore(tables: Tables, keyring: () => Keyring): MasterKeyStore {
  const { providerKeys, realtimeSecrets } = tables
  return {
    async versions() {
      return [
        { kind: 'provider_keys', versions: [...new Set(providerKeys.all().map(({ sealed }) => sealed.version))] },
        {
          kind: 'realtime_secrets',
          versions: [...new Set([...realtimeSecrets.rows()].map(({ session }) => versionOf(session)))],
        },
      ]
    },
    async reencrypt(withNewKey, actor) {
      const ring = attempt(keyring)
      if (withNewKey) attempt(() => ring.addKey())
      const { version } = ring
      return tables.run(() => {
        const tally = new ReencryptionTally()
        for (const key of providerKeys.filter(({ sealed }) => sealed.version !== version)) {
          const sealed = resealed(ring, key.sealed, placeOf(key))
          tally.add('provider_keys', key.id, sealed ? 'reencrypted' : 'unreadable')
          if (!sealed) continue
          providerKeys.set(key.id, { ...key, sealed })
          changed(tables, key.orgId)
        }
        for (const secret of [...realtimeSecrets.rows()].filter(row => versionOf(row.session) !== version)) {
          const session = resealedText(ring, secret.session, placeOfSession(secret.hash))
          tally.add('realtime_secrets', secret.hash, session === undefined ? 'unreadable' : 'reencrypted')
          if (session !== undefined) realtimeSecrets.set(secret.hash, { ...secret, session })
        }
        const became = tally.done(version)
        tables.note({
          ...{ actor, action: 'provider-keys.reencrypt', organization: null, subject: version },
          ...{ was: undefined, became },
        })
        return became
      })
    },
  }
}
