/** Changes of the master key: seals every stored value anew, some rows per transaction. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Actor, MasterKeyStore, Reencryption, SealedVersions } from '../../core/ports.ts'
import type { Keyring } from '../keyring.ts'
import { REENCRYPTION_BYTES, ReencryptionTally, type ResealedRow } from '../rules/reencryption.ts'
import { attempt, resealedText, sealText, versionOf } from '../sealing.ts'
import type { AuditedTransaction } from './audit.ts'
import { SEALED_TABLES, type SealedRow, type SealedTable } from './sealed-tables.ts'
import { first, type Sql } from './sql.ts'

/** Sealed in one row, so that a node with other master keys is found before it seals anything. */
const CHECK = { text: 'model-gateway', place: 'master_key_check' }
const ADD_CHECK = 'INSERT INTO master_key_check (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING'
const KEEP_CHECK = ADD_CHECK.replace('NOTHING', 'UPDATE SET sealed = excluded.sealed')

interface ListedRow {
  readonly id: string
  /** Bytes of sealed values; 0 when all are under the newest master key. */
  readonly bytes: bigint
}

/** Goes through `SEALED_TABLES`. Rows that cannot be opened stay as they are and are counted. */
export class SqlMasterKeys implements MasterKeyStore {
  readonly #changes: AuditedTransaction
  readonly #keyring: () => Keyring

  /** Opens the keyring when it is first needed. */
  constructor(changes: AuditedTransaction, keyring: () => Keyring) {
    this.#changes = changes
    this.#keyring = keyring
  }

  async versions(): Promise<SealedVersions[]> {
    const found: SealedVersions[] = []
    for (const { kind, versions } of SEALED_TABLES) {
      const rows = await this.#changes.sql.query<{ sealed: string }>(versions)
      found.push({ kind, versions: [...new Set(rows.map(({ sealed }) => versionOf(sealed)))] })
    }
    return found
  }

  /** The first caller seals the check value, unless it lacks every key that the stored values are sealed under. */
  async foreign(givenUp: string | undefined): Promise<string | undefined> {
    const keyring = this.#keyring()
    const kept = await this.#check()
    if (kept !== undefined && opens(keyring, kept)) return undefined
    const usable = kept === undefined ? [...keyring.versions, givenUp] : [givenUp]
    const sealed = kept === undefined ? (await this.versions()).flatMap(({ versions }) => versions) : [versionOf(kept)]
    if (sealed.length > 0 && !sealed.some(version => usable.includes(version))) return sealed[0]
    const text = kept === undefined ? ADD_CHECK : KEEP_CHECK
    await this.#changes.write(({ sql }) => sql.query(text, [sealedCheck(keyring)]))
    // Another node may have been first.
    const now = (await this.#check())!
    return opens(keyring, now) ? undefined : versionOf(now)
  }

  async #check(): Promise<string | undefined> {
    const text = 'SELECT sealed FROM master_key_check'
    const row = await this.#changes.read(() => first<{ sealed: string }>(this.#changes.sql, text, []))
    return row?.sealed
  }

  /** Each value records its master key, so that an interrupted run leaves all readable. */
  async reencrypt(withNewKey: boolean, actor: Actor): Promise<Reencryption> {
    const keyring = attempt(this.#keyring)
    if (withNewKey) attempt(() => keyring.addKey())
    const { version } = keyring
    const tally = new ReencryptionTally()
    for (const table of SEALED_TABLES) await this.#resealTable(table, keyring, tally)
    const became = tally.done(version)
    const action = 'provider-keys.reencrypt'
    await this.#changes.run(async ({ sql, note }) => {
      await sql.query(KEEP_CHECK, [sealedCheck(keyring)])
      await note({ actor, action, organization: null, subject: version, was: undefined, became })
    })
    return became
  }

  async #resealTable(table: SealedTable, keyring: Keyring, tally: ReencryptionTally): Promise<void> {
    for (let after = ''; ; ) {
      const rows = firstOf(await this.#changes.sql.query<ListedRow>(table.list, [keyring.version, after]))
      const last = rows.at(-1)
      if (!last) return
      after = last.id
      const stale = rows.filter(row => row.bytes > 0n)
      if (stale.length === 0) {
        await nextTurn()
        continue
      }
      // The transaction may run twice: what it counts is its result.
      const done = await this.#changes.write(async ({ sql }) => {
        const results: ResealedRow[] = []
        for (const { id } of stale) results.push(await resealRow(sql, table, keyring, id))
        return results
      })
      for (const [at, row] of stale.entries()) tally.add(table.kind, row.id, done[at])
    }
  }
}

const sealedCheck = (keyring: Keyring): string => sealText(keyring, CHECK.text, CHECK.place)

const opens = (keyring: Keyring, sealed: string): boolean => resealedText(keyring, sealed, CHECK.place) !== undefined

async function resealRow(sql: Sql, table: SealedTable, keyring: Keyring, id: string): Promise<ResealedRow> {
  const found = await first<SealedRow>(sql, table.find, [id])
  if (!found) return undefined
  const { row, isReadable } = table.reseal(found, keyring)
  if (row) await sql.query(table.update, [id, ...table.columns.map(column => row[column]!)])
  return isReadable ? 'reencrypted' : 'unreadable'
}

/** The first rows, as many as one transaction takes. */
function firstOf(rows: readonly ListedRow[]): readonly ListedRow[] {
  let sum = 0n
  const end = rows.findIndex(({ bytes }, at) => {
    sum += bytes
    return at > 0 && sum > REENCRYPTION_BYTES
  })
  return end < 0 ? rows : rows.slice(0, end)
}
