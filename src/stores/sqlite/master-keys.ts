/** Changes of the master key: seals every stored value anew, some rows per transaction. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Statement } from 'better-sqlite3'
import type { Actor, MasterKeyStore, Reencryption, SealedVersions } from '../../core/ports.ts'
import type { Keyring } from '../keyring.ts'
import { REENCRYPTION_BYTES, ReencryptionTally, type ResealedRow } from '../rules/reencryption.ts'
import { attempt } from '../sealing.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { SEALED_TABLES, type SealedTable } from './sealed-tables.ts'

interface ListedRow {
  readonly id: string
  /** Of sealed values; 0 where all are under the newest master key. */
  readonly bytes: number
}

/** Goes through `SEALED_TABLES`. Rows that cannot be opened stay as they are and are counted. */
export class SqliteMasterKeys implements MasterKeyStore {
  readonly #db: Sqlite
  readonly #changes: AuditedTransaction
  readonly #keyring: () => Keyring

  /** Opens the keyring when it is first needed. */
  constructor(db: Sqlite, changes: AuditedTransaction, keyring: () => Keyring) {
    this.#db = db
    this.#changes = changes
    this.#keyring = keyring
  }

  async versions(): Promise<SealedVersions[]> {
    return SEALED_TABLES.map(({ kind, versions }) => ({
      kind,
      versions: this.#db.prepare<[], string>(versions).pluck().all(),
    }))
  }

  /** Each value records its master key, so that an interrupted run leaves all readable. */
  async reencrypt(withNewKey: boolean, actor: Actor): Promise<Reencryption> {
    const keyring = attempt(this.#keyring)
    if (withNewKey) attempt(() => keyring.addKey())
    const { version } = keyring
    const tally = new ReencryptionTally()
    for (const table of SEALED_TABLES) await this.#resealTable(table, keyring, tally)
    const became = tally.done(version)
    await this.#changes.run(() => {
      const action = 'provider-keys.reencrypt'
      this.#changes.note({ actor, action, organization: null, subject: version, was: undefined, became })
    })
    return became
  }

  async #resealTable(table: SealedTable, keyring: Keyring, tally: ReencryptionTally): Promise<void> {
    const { version } = keyring
    const list: Statement<{ version: string; after: string }, ListedRow> = this.#db.prepare(table.list)
    const find: Statement<[string], Record<string, unknown>> = this.#db.prepare(table.find)
    const update = this.#db.prepare(table.update)
    const reseal = (id: string): ResealedRow => {
      const found = find.get(id)
      if (!found) return undefined
      const { row, isReadable } = table.reseal(found, keyring)
      if (row) update.run(row)
      return isReadable ? 'reencrypted' : 'unreadable'
    }
    for (let after = ''; ; ) {
      const rows = firstOf(list.all({ version, after }))
      const last = rows.at(-1)
      if (!last) return
      after = last.id
      const stale = rows.filter(row => row.bytes > 0)
      if (stale.length === 0) {
        await nextTurn()
        continue
      }
      // The transaction may run twice: what it counts is its result.
      const done = await this.#changes.write(() => stale.map(row => reseal(row.id)))
      for (const [at, row] of stale.entries()) tally.add(table.kind, row.id, done[at])
    }
  }
}

/** The first rows, as many as one transaction takes. */
function firstOf(rows: readonly ListedRow[]): readonly ListedRow[] {
  let sum = 0
  const end = rows.findIndex(({ bytes }, at) => {
    sum += bytes
    return at > 0 && sum > REENCRYPTION_BYTES
  })
  return end < 0 ? rows : rows.slice(0, end)
}
