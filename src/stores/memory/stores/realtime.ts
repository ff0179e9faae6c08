/** Client secrets of realtime sessions, in memory. */
import type { RealtimeSecretStore } from '../../../core/ports.ts'
import type { Keyring } from '../../keyring.ts'
import { MAX_SECRETS, newClientSecret, placeOfSession, secretPrincipal } from '../../rules/realtime.ts'
import { openText, sealText } from '../../sealing.ts'
import type { Live } from './oauth/index.ts'
import type { Tables } from './tables.ts'

/** Secrets by their hash; expired ones, and the oldest of a key beyond `MAX_SECRETS`, go when one begins. */
export function realtimeSecretStore(tables: Tables, live: Live, keyring: () => Keyring): RealtimeSecretStore {
  const { realtimeSecrets: secrets, now } = tables
  return {
    async begin({ principal: { keyId }, session, expiresAt }) {
      const { secret, hash, id } = newClientSecret()
      for (const row of [...secrets.rows()]) if (row.expiresAt <= now()) secrets.delete(row.hash)
      const own = [...secrets.rows()].filter(row => row.keyId === keyId).sort((a, b) => a.expiresAt - b.expiresAt)
      for (const { hash: oldest } of own.slice(0, Math.max(0, own.length - MAX_SECRETS + 1))) secrets.delete(oldest)
      const sealed = sealText(keyring(), session, placeOfSession(hash))
      secrets.set(hash, { hash, id, keyId, session: sealed, expiresAt: Math.floor(expiresAt) })
      return { id, secret }
    },
    async find(hash) {
      const row = secrets.get(hash)
      const principal = row && row.expiresAt > now() ? live(row.keyId) : undefined
      if (!row || !principal) return undefined
      const session = openText(keyring(), row.session, placeOfSession(hash))
      return secretPrincipal(principal, { id: row.id, session }, row.expiresAt)
    },
    live: async keyId => live(keyId),
  }
}
