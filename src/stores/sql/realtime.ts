/** Client secrets of realtime sessions. They are no changes of an operator's: no line of the audit log is theirs. */
import type { RealtimeSecretStore } from '../../core/ports.ts'
import { MAX_SECRETS, newClientSecret, placeOfSession, SECRETS_FORGOTTEN, secretPrincipal } from '../rules/realtime.ts'
import { openText, type SealingOptions, sealText } from '../sealing.ts'
import type { SqlKeys } from './keys.ts'
import { attempt, first, type Sql } from './sql.ts'

interface SecretRow {
  readonly id: string
  readonly key_id: string
  readonly session: string
  readonly expires_at: bigint
}

const INSERT = `
  INSERT INTO realtime_secrets (hash, id, key_id, session, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6)`
const DELETE_OVER = `
  DELETE FROM realtime_secrets WHERE hash IN (
    SELECT hash FROM realtime_secrets WHERE expires_at <= $1 ORDER BY expires_at LIMIT ${SECRETS_FORGOTTEN})`
const DELETE_BEYOND = `
  DELETE FROM realtime_secrets WHERE hash IN (
    SELECT hash FROM realtime_secrets WHERE key_id = $1 ORDER BY expires_at DESC, rowid DESC
    LIMIT ${SECRETS_FORGOTTEN} OFFSET ${MAX_SECRETS - 1})`

/** Makes the `RealtimeSecretStore` over `realtime_secrets`, by the hash of a secret. */
export const sqlRealtimeSecrets = (
  db: Sql,
  keys: SqlKeys,
  { keyring, now: clock }: SealingOptions,
): RealtimeSecretStore => ({
  async begin({ principal, session, expiresAt }) {
    const { secret, hash, id, text } = newClientSecret(principal, session)
    const { keyId } = principal
    const sealed = sealText(keyring(), text, placeOfSession(hash))
    await attempt(() =>
      db.transaction(async sql => {
        const now = clock()
        await sql.query(DELETE_OVER, [now])
        await sql.query(DELETE_BEYOND, [keyId])
        await sql.query(INSERT, [hash, id, keyId, sealed, Math.floor(expiresAt), now])
      }),
    )
    return { id, secret }
  },

  find: hash =>
    attempt(async () => {
      const row = await first<SecretRow>(db, 'SELECT * FROM realtime_secrets WHERE hash = $1', [hash])
      if (!row || row.expires_at <= clock()) return undefined
      const principal = await keys.live(db, row.key_id)
      if (!principal) return undefined
      const text = openText(keyring(), row.session, placeOfSession(hash))
      return secretPrincipal(principal, row.id, text, Number(row.expires_at))
    }),

  live: keyId => attempt(() => keys.live(db, keyId)),
})
