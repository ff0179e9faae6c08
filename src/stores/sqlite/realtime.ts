/** Client secrets of realtime sessions. They are no changes of an operator's: no line of the audit log is theirs. */
import type { Statement } from 'better-sqlite3'
import type { Principal, RealtimeSecretStore } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import type { Keyring } from '../keyring.ts'
import { MAX_SECRETS, newClientSecret, placeOfSession, SECRETS_FORGOTTEN, secretPrincipal } from '../rules/realtime.ts'
import { openText, sealText } from '../sealing.ts'
import type { SqliteKeys } from './keys.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

interface SecretRow {
  readonly id: string
  readonly key_id: string
  readonly session: string
  readonly expires_at: number
}

/** `RealtimeSecretStore` over `realtime_secrets`, by the hash of a secret. */
export class SqliteRealtimeSecrets implements RealtimeSecretStore {
  readonly #writer: Writer
  readonly #keys: SqliteKeys
  readonly #keyring: () => Keyring
  readonly #now: () => number
  readonly #insert: Statement
  readonly #deleteOver: Statement
  readonly #deleteBeyond: Statement
  readonly #find: Statement<[string], SecretRow>

  constructor(db: Sqlite, writer: Writer, keys: SqliteKeys, options: { keyring: () => Keyring; now: () => number }) {
    this.#writer = writer
    this.#keys = keys
    this.#keyring = options.keyring
    this.#now = options.now
    this.#insert = db.prepare(`
      INSERT INTO realtime_secrets (hash, id, key_id, session, created_at, expires_at)
      VALUES (@hash, @id, @keyId, @session, @now, @expiresAt)`)
    this.#deleteOver = db.prepare(`
      DELETE FROM realtime_secrets WHERE hash IN (
        SELECT hash FROM realtime_secrets WHERE expires_at <= ? ORDER BY expires_at LIMIT ${SECRETS_FORGOTTEN})`)
    this.#deleteBeyond = db.prepare(`
      DELETE FROM realtime_secrets WHERE hash IN (
        SELECT hash FROM realtime_secrets WHERE key_id = ? ORDER BY expires_at DESC, rowid DESC
        LIMIT ${SECRETS_FORGOTTEN} OFFSET ${MAX_SECRETS - 1})`)
    this.#find = db.prepare<[string], SecretRow>('SELECT * FROM realtime_secrets WHERE hash = ?')
  }

  async begin({ principal, session, expiresAt }: Parameters<RealtimeSecretStore['begin']>[0]) {
    const { secret, hash, id } = newClientSecret()
    const sealed = sealText(this.#keyring(), session, placeOfSession(hash))
    const { keyId } = principal
    await this.#writer.run(
      () => {
        const now = this.#now()
        this.#deleteOver.run(now)
        this.#deleteBeyond.run(keyId)
        this.#insert.run({ hash, id, keyId, session: sealed, now, expiresAt: Math.floor(expiresAt) })
      },
      'durable',
      errors.storeUnavailable,
    )
    return { id, secret }
  }

  async find(hash: string): Promise<Principal | undefined> {
    try {
      const row = this.#find.get(hash)
      const principal = row && row.expires_at > this.#now() ? this.#keys.live(row.key_id) : undefined
      if (!row || !principal) return undefined
      const session = openText(this.#keyring(), row.session, placeOfSession(hash))
      return secretPrincipal(principal, { id: row.id, session }, row.expires_at)
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
  }

  async live(keyId: string): Promise<Principal | undefined> {
    try {
      return this.#keys.live(keyId)
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
  }
}
