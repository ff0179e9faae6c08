/** Client secrets of realtime sessions. They are no changes of an operator's: no line of the audit log is theirs. */
import type { Principal, RealtimeSecretStore } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import type { Keyring } from '../keyring.ts'
import { MAX_SECRETS, newClientSecret, placeOfSession, SECRETS_FORGOTTEN, secretPrincipal } from '../rules/realtime.ts'
import { openText, sealText } from '../sealing.ts'
import { rejectingWith } from './explained.ts'
import type { SqlKeys } from './keys.ts'
import { first, type Sql } from './sql.ts'

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

const attempt = rejectingWith(errors.storeUnavailable)

interface RealtimeOptions {
  readonly keyring: () => Keyring
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
}

/** `RealtimeSecretStore` over `realtime_secrets`, by the hash of a secret. */
export class SqlRealtimeSecrets implements RealtimeSecretStore {
  readonly #sql: Sql
  readonly #keys: SqlKeys
  readonly #options: RealtimeOptions

  constructor(sql: Sql, keys: SqlKeys, options: RealtimeOptions) {
    this.#sql = sql
    this.#keys = keys
    this.#options = options
  }

  async begin({ principal, session, expiresAt }: Parameters<RealtimeSecretStore['begin']>[0]) {
    const { secret, hash, id, text } = newClientSecret(principal, session)
    const { keyId } = principal
    const sealed = sealText(this.#options.keyring(), text, placeOfSession(hash))
    await attempt(() =>
      this.#sql.transaction(async sql => {
        const now = this.#options.now()
        await sql.query(DELETE_OVER, [now])
        await sql.query(DELETE_BEYOND, [keyId])
        await sql.query(INSERT, [hash, id, keyId, sealed, Math.floor(expiresAt), now])
      }),
    )
    return { id, secret }
  }

  find(hash: string): Promise<Principal | undefined> {
    return attempt(async () => {
      const row = await first<SecretRow>(this.#sql, 'SELECT * FROM realtime_secrets WHERE hash = $1', [hash])
      if (!row || row.expires_at <= this.#options.now()) return undefined
      const principal = await this.#keys.live(this.#sql, row.key_id)
      if (!principal) return undefined
      const text = openText(this.#options.keyring(), row.session, placeOfSession(hash))
      return secretPrincipal(principal, row.id, text, Number(row.expires_at))
    })
  }

  live(keyId: string): Promise<Principal | undefined> {
    return attempt(() => this.#keys.live(this.#sql, keyId))
  }
}
