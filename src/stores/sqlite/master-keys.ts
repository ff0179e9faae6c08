/** Changes of the master key: seals every stored value anew, some rows per transaction. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Statement } from 'better-sqlite3'
import type { Actor, MasterKeyStore, Reencryption, SealedVersions } from '../../core/ports.ts'
import type { Keyring } from '../keyring.ts'
import { REENCRYPTION_BATCH, REENCRYPTION_BYTES, ReencryptionTally, type ResealedRow } from '../rules/reencryption.ts'
import { attempt } from '../sealing.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { SEALED_TABLES, type SealedTable } from './sealed-tables.ts'

/** Rows at each end of a table whose master keys are looked up: all of them would take long where much is stored. */
const LOOKED_AT = 1000

interface ListedRow {
  readonly id: string
  /** Of sealed values; 0 where all are under the newest master key. */
  readonly bytes: number
}

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
    return SEALED_TABLES.map(({ name, id, versions }) => {
      const names = versions.map((_, at) => `version_${at}`)
      const selected = versions.map((version, at) => `${version} AS ${names[at]}`).join(', ')
      const ends = ['ASC', 'DESC'].map(
        order => `SELECT * FROM (SELECT ${selected} FROM ${name} ORDER BY ${id} ${order} LIMIT ${LOOKED_AT})`,
      )
      const query = `
        WITH looked_at AS (${ends.join(' UNION ALL ')})
        ${names.map(version => `SELECT DISTINCT ${version} FROM looked_at WHERE ${version} IS NOT NULL`).join(' UNION ')}`
      return { kind: name, versions: this.#db.prepare<[], string>(query).pluck().all() }
    })
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
    const { name, id, isStale, bytes } = table
    const { version } = keyring
    const list: Statement<{ version: string; after: string }, ListedRow> = this.#db.prepare(`
      SELECT ${id} AS id, iif(${isStale}, ${bytes}, 0) AS bytes FROM ${name}
      WHERE ${id} > @after ORDER BY ${id} LIMIT ${REENCRYPTION_BATCH}`)
    const find: Statement<[string], Record<string, unknown>> = this.#db.prepare(`SELECT * FROM ${name} WHERE ${id} = ?`)
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
      const done = await this.#changes.write(() => stale.map(row => this.#reseal(table, find.get(row.id), keyring)))
      for (const [at, row] of stale.entries()) tally.add(name, row.id, done[at])
    }
  }

  /** Within a transaction. */
  #reseal(table: SealedTable, row: Record<string, unknown> | undefined, keyring: Keyring): ResealedRow {
    if (!row) return undefined
    const { columns, isReadable } = table.reseal(row, keyring)
    const sets = Object.keys(columns).map(column => `${column} = @${column}`)
    if (sets.length > 0) {
      this.#db
        .prepare(`UPDATE ${table.name} SET ${sets.join(', ')} WHERE ${table.id} = @rowId`)
        .run({ ...columns, rowId: row[table.id] })
    }
    return isReadable ? 'reencrypted' : 'unreadable'
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
