/** The columns of the database that are sealed under a master key: their statements, and where each value is bound to. */
import type { Sealed } from '../../core/policy.ts'
import type { SealedKind } from '../../core/ports.ts'
import { type Keyring, placeOf as placeOfKey } from '../keyring.ts'
import { jobPlace } from '../rules/jobs.ts'
import { placeOfSession } from '../rules/realtime.ts'
import { REENCRYPTION_BATCH } from '../rules/reencryption.ts'
import { responsePlace } from '../rules/responses.ts'
import { resealed, resealedText, versionOf } from '../sealing.ts'
import { contentPlace } from './contents.ts'
import type { SqlValue } from './sql.ts'

/** A row of a sealed table, and the same row with values sealed anew. */
export type SealedRow = Readonly<Record<string, SqlValue>>

/** How the values of one kind are found, counted and sealed anew. */
export interface SealedTable {
  readonly kind: SealedKind
  /** SQL: the beginnings of the sealed texts, or the master keys, of the first and the last thousand rows. */
  readonly versions: string
  /** SQL: `id` and `bytes` of the rows after `$2`; bytes are 0 where all is under the master key `$1`. */
  readonly list: string
  /** SQL: a row by its id. */
  readonly find: string
  /** SQL: sets `columns` from `$2` on, of the row with the id `$1`. */
  readonly update: string
  readonly columns: readonly string[]
  reseal(row: SealedRow, keyring: Keyring): Resealed
}

interface Resealed {
  /** The row to write; undefined where nothing changes. */
  readonly row: SealedRow | undefined
  /** False where a value cannot be opened: it stays as it is. */
  readonly isReadable: boolean
}

const UNREADABLE: Resealed = { row: undefined, isReadable: false }
/** Characters of a sealed text that hold its version. */
const VERSION_CHARACTERS = 100

/** SQL: the values of `expression` in the first and the last thousand rows. */
const endsOf = (table: string, expression: string, id = 'id'): string => `
  SELECT DISTINCT sealed FROM (
    SELECT * FROM (SELECT ${expression} AS sealed FROM ${table} ORDER BY ${id} LIMIT 1000) AS head
    UNION SELECT * FROM (SELECT ${expression} AS sealed FROM ${table} ORDER BY ${id} DESC LIMIT 1000) AS tail
  ) AS ends WHERE sealed IS NOT NULL`

/** SQL: a page of rows; `isStale` is a condition, `bytes` their size. */
const listOf = (table: string, isStale: string, bytes: string, id = 'id'): string => `
  SELECT ${id} AS id, CASE WHEN ${isStale} THEN ${bytes} ELSE 0 END AS bytes
  FROM ${table} WHERE ${id} > CAST($2 AS text) ORDER BY ${id} LIMIT ${REENCRYPTION_BATCH}`

const updateOf = (table: string, columns: readonly string[], id = 'id'): string =>
  `UPDATE ${table} SET ${columns.map((column, at) => `${column} = $${at + 2}`).join(', ')} WHERE ${id} = $1`

/** Columns that name the place of a secret. */
type Place = Readonly<Record<'id' | 'org_id' | 'provider', string>>

const SECRET_COLUMNS = ['master_key', 'nonce', 'ciphertext']
/** A table whose rows each hold one secret, for the place that the columns `of` name. */
const secretsOf = (kind: SealedKind, of: readonly string[], placeOf: (row: Place) => string): SealedTable => ({
  kind,
  versions: endsOf(kind, 'master_key'),
  list: listOf(kind, 'master_key <> CAST($1 AS text)', 'octet_length(ciphertext)'),
  find: `SELECT ${[...of, ...SECRET_COLUMNS].join(', ')} FROM ${kind} WHERE id = $1`,
  update: updateOf(kind, SECRET_COLUMNS),
  columns: SECRET_COLUMNS,
  reseal(row, keyring) {
    const sealed = resealed(keyring, sealedIn(row, 'nonce', 'ciphertext'), placeOf(row as Place))
    if (!sealed) return UNREADABLE
    const { version, nonce, ciphertext } = sealed
    return { row: { master_key: version, nonce, ciphertext }, isReadable: true }
  },
})

const providerKeys = secretsOf('provider_keys', ['id', 'org_id', 'provider'], ({ id, org_id: orgId, provider }) =>
  placeOfKey({ id, orgId, provider }),
)
const contents = secretsOf('contents', ['id', 'org_id'], ({ id, org_id }) => contentPlace(org_id, id))

const responseColumns = ['master_key', 'answer_nonce', 'answer', 'turn_nonce', 'turn']
const responses: SealedTable = {
  kind: 'responses',
  versions: endsOf('responses', 'master_key'),
  list: listOf('responses', 'master_key <> CAST($1 AS text)', 'octet_length(answer) + octet_length(turn)'),
  find: 'SELECT id, org_id, master_key, answer_nonce, answer, turn_nonce, turn FROM responses WHERE id = $1',
  update: updateOf('responses', responseColumns),
  columns: responseColumns,
  reseal(row, keyring) {
    const { id, org_id } = row
    const place = (column: 'answer' | 'turn') => responsePlace(String(org_id), String(id), column)
    const answer = resealed(keyring, sealedIn(row, 'answer_nonce', 'answer'), place('answer'))
    const turn = answer && resealed(keyring, sealedIn(row, 'turn_nonce', 'turn'), place('turn'))
    if (!turn) return UNREADABLE
    const nonces = { answer_nonce: answer.nonce, turn_nonce: turn.nonce }
    const texts = { answer: answer.ciphertext, turn: turn.ciphertext }
    return { row: { master_key: turn.version, ...nonces, ...texts }, isReadable: true }
  },
}

/** SQL: whether a sealed text is under another master key than `$1`. */
const isOld = (column: string): string => `coalesce(${column} NOT LIKE CAST($1 AS text) || '.%', false)`

const realtimeSecrets: SealedTable = {
  kind: 'realtime_secrets',
  versions: endsOf('realtime_secrets', `substr(session, 1, ${VERSION_CHARACTERS})`, 'hash'),
  list: listOf('realtime_secrets', isOld('session'), 'octet_length(session)', 'hash'),
  find: 'SELECT hash, session FROM realtime_secrets WHERE hash = $1',
  update: updateOf('realtime_secrets', ['session'], 'hash'),
  columns: ['session'],
  reseal: (row, keyring) => resealTexts(row, keyring, ['session'], () => placeOfSession(String(row.hash))),
}

const jobColumns = ['result_url', 'callback_url', 'callback_secret']
const jobs: SealedTable = {
  kind: 'jobs',
  versions: jobColumns.map(column => endsOf('jobs', `substr(${column}, 1, ${VERSION_CHARACTERS})`)).join(' UNION '),
  list: listOf(
    'jobs',
    jobColumns.map(isOld).join(' OR '),
    jobColumns.map(column => `coalesce(octet_length(${column}), 0)`).join(' + '),
  ),
  find: `SELECT id, ${jobColumns.join(', ')} FROM jobs WHERE id = $1`,
  update: updateOf('jobs', jobColumns),
  columns: jobColumns,
  reseal: (row, keyring) => resealTexts(row, keyring, jobColumns, column => jobPlace(String(row.id), column)),
}

/** All of them, in the order in which they are sealed anew. */
export const SEALED_TABLES: readonly SealedTable[] = [providerKeys, responses, realtimeSecrets, jobs, contents]

const sealedIn = (row: SealedRow, nonce: string, ciphertext: string): Sealed =>
  ({ version: row.master_key, nonce: row[nonce], ciphertext: row[ciphertext] }) as Sealed

/** Columns that hold texts of `sealText`, or NULL. */
function resealTexts(
  row: SealedRow,
  keyring: Keyring,
  columns: readonly string[],
  placeOf: (column: string) => string,
): Resealed {
  const changed: Record<string, SqlValue> = {}
  let isReadable = true
  for (const column of columns) {
    const was = row[column]
    if (typeof was !== 'string' || versionOf(was) === keyring.version) continue
    const sealed = resealedText(keyring, was, placeOf(column))
    if (sealed === undefined) isReadable = false
    else changed[column] = sealed
  }
  return { row: Object.keys(changed).length > 0 ? { ...row, ...changed } : undefined, isReadable }
}
