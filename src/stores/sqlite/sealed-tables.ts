/** The columns of the database that are sealed under a master key, and where each value is bound to. */
import type { Sealed } from '../../core/policy.ts'
import type { SealedKind } from '../../core/ports.ts'
import { type Keyring, placeOf as placeOfKey } from '../keyring.ts'
import { placeOfSession } from '../rules/realtime.ts'
import { responsePlace } from '../rules/responses.ts'
import { resealed, resealedText, versionOf } from '../sealing.ts'
import { placeOf as placeOfJob } from './jobs/rows.ts'

type Row = Readonly<Record<string, unknown>>

export interface SealedTable {
  readonly name: SealedKind
  /** Its primary key, a text. */
  readonly id: string
  /** SQL: whether a row has a value under another master key than `@version`. */
  readonly isStale: string
  /** SQL: of each of a row's sealed values the version of its master key, or NULL. */
  readonly versions: readonly string[]
  /** SQL: bytes of a row's sealed values. */
  readonly bytes: string
  /** Columns of a row under the newest master key; those that are unreadable are missing. */
  reseal(row: Row, keyring: Keyring): { readonly columns: Row; readonly isReadable: boolean }
}

const bytesOf = (columns: readonly string[]): string =>
  columns.map(column => `coalesce(octet_length(${column}), 0)`).join(' + ')

/** Ciphertexts and their nonces in columns of their own, under one master key. */
function blobTable(
  name: SealedKind,
  columns: readonly (readonly [ciphertext: string, nonce: string])[],
  placeOf: (row: Row, column: string) => string,
): SealedTable {
  return {
    name,
    id: 'id',
    isStale: 'master_key <> @version',
    versions: ['master_key'],
    bytes: bytesOf(columns.map(([ciphertext]) => ciphertext)),
    reseal(row, keyring) {
      const changed: Record<string, unknown> = {}
      for (const [column, nonce] of columns) {
        const was = { version: row.master_key, nonce: row[nonce], ciphertext: row[column] } as Sealed
        const sealed = resealed(keyring, was, placeOf(row, column))
        if (!sealed) return { columns: {}, isReadable: false }
        changed.master_key = sealed.version
        changed[column] = sealed.ciphertext
        changed[nonce] = sealed.nonce
      }
      return { columns: changed, isReadable: true }
    },
  }
}

/** Values as texts of `sealText`, or NULL. */
function textTable(
  name: SealedKind,
  id: string,
  columns: readonly string[],
  placeOf: (row: Row, column: string) => string,
): SealedTable {
  return {
    name,
    id,
    isStale: columns.map(column => `coalesce(${column} NOT LIKE @version || '.%', 0)`).join(' OR '),
    versions: columns.map(column => `substr(${column}, 1, instr(${column}, '.') - 1)`),
    bytes: bytesOf(columns),
    reseal(row, keyring) {
      const changed: Record<string, unknown> = {}
      let isReadable = true
      for (const column of columns) {
        const was = row[column]
        if (typeof was !== 'string' || versionOf(was) === keyring.version) continue
        const sealed = resealedText(keyring, was, placeOf(row, column))
        if (sealed === undefined) isReadable = false
        else changed[column] = sealed
      }
      return { columns: changed, isReadable }
    },
  }
}

export const SEALED_TABLES: readonly SealedTable[] = [
  blobTable('provider_keys', [['ciphertext', 'nonce']], ({ id, org_id, provider }) =>
    placeOfKey({ id: String(id), orgId: String(org_id), provider: String(provider) }),
  ),
  blobTable(
    'responses',
    [
      ['answer', 'answer_nonce'],
      ['turn', 'turn_nonce'],
    ],
    ({ id, org_id }, column) => responsePlace(String(org_id), String(id), column as 'answer' | 'turn'),
  ),
  textTable('realtime_secrets', 'hash', ['session'], ({ hash }) => placeOfSession(String(hash))),
  textTable('jobs', 'id', ['result_url', 'callback_url', 'callback_secret'], ({ id }, column) =>
    placeOfJob(String(id), column),
  ),
]
