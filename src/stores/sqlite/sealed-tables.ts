/** The columns of the database that are sealed under a master key: their statements, and where each value is bound to. */
import type { Sealed } from '../../core/policy.ts'
import type { SealedKind } from '../../core/ports.ts'
import { type Keyring, placeOf as placeOfKey } from '../keyring.ts'
import { placeOfSession } from '../rules/realtime.ts'
import { REENCRYPTION_BATCH } from '../rules/reencryption.ts'
import { responsePlace } from '../rules/responses.ts'
import { resealed, resealedText, versionOf } from '../sealing.ts'
import { placeOf as placeOfJob } from './jobs/rows.ts'

type Row = Readonly<Record<string, unknown>>

/** How the values of one kind are found, counted and sealed anew. */
export interface SealedTable {
  readonly kind: SealedKind
  /** SQL: versions of the master keys that the first and the last thousand rows are under. */
  readonly versions: string
  /** SQL: `id` and `bytes` of the rows after `@after`; bytes are 0 where all is under the master key `@version`. */
  readonly list: string
  /** SQL: a row by its id. */
  readonly find: string
  /** SQL: sets what `reseal` returns. */
  readonly update: string
  reseal(row: Row, keyring: Keyring): Resealed
}

interface Resealed {
  /** Parameters of `update`; undefined where nothing changes. */
  readonly row: Row | undefined
  /** False where a value cannot be opened: it stays as it is. */
  readonly isReadable: boolean
}

const UNREADABLE: Resealed = { row: undefined, isReadable: false }

const providerKeys: SealedTable = {
  kind: 'provider_keys',
  versions: `
    SELECT DISTINCT master_key FROM (
      SELECT * FROM (SELECT master_key FROM provider_keys ORDER BY id LIMIT 1000)
      UNION SELECT * FROM (SELECT master_key FROM provider_keys ORDER BY id DESC LIMIT 1000))`,
  list: `
    SELECT id, iif(master_key <> @version, octet_length(ciphertext), 0) AS bytes
    FROM provider_keys WHERE id > @after ORDER BY id LIMIT ${REENCRYPTION_BATCH}`,
  find: 'SELECT id, org_id, provider, master_key, nonce, ciphertext FROM provider_keys WHERE id = ?',
  update: `
    UPDATE provider_keys SET master_key = @master_key, nonce = @nonce, ciphertext = @ciphertext WHERE id = @id`,
  reseal(row, keyring) {
    const { id, org_id, provider } = row
    const place = placeOfKey({ id: String(id), orgId: String(org_id), provider: String(provider) })
    const sealed = resealed(keyring, sealedIn(row, 'nonce', 'ciphertext'), place)
    if (!sealed) return UNREADABLE
    const { version, nonce, ciphertext } = sealed
    return { row: { id, master_key: version, nonce, ciphertext }, isReadable: true }
  },
}

const responses: SealedTable = {
  kind: 'responses',
  versions: `
    SELECT DISTINCT master_key FROM (
      SELECT * FROM (SELECT master_key FROM responses ORDER BY id LIMIT 1000)
      UNION SELECT * FROM (SELECT master_key FROM responses ORDER BY id DESC LIMIT 1000))`,
  list: `
    SELECT id, iif(master_key <> @version, octet_length(answer) + octet_length(turn), 0) AS bytes
    FROM responses WHERE id > @after ORDER BY id LIMIT ${REENCRYPTION_BATCH}`,
  find: 'SELECT id, org_id, master_key, answer_nonce, answer, turn_nonce, turn FROM responses WHERE id = ?',
  update: `
    UPDATE responses SET master_key = @master_key, answer_nonce = @answer_nonce, answer = @answer,
      turn_nonce = @turn_nonce, turn = @turn
    WHERE id = @id`,
  reseal(row, keyring) {
    const { id, org_id } = row
    const place = (column: 'answer' | 'turn') => responsePlace(String(org_id), String(id), column)
    const answer = resealed(keyring, sealedIn(row, 'answer_nonce', 'answer'), place('answer'))
    const turn = answer && resealed(keyring, sealedIn(row, 'turn_nonce', 'turn'), place('turn'))
    if (!turn) return UNREADABLE
    const nonces = { answer_nonce: answer.nonce, turn_nonce: turn.nonce }
    const texts = { answer: answer.ciphertext, turn: turn.ciphertext }
    return { row: { id, master_key: turn.version, ...nonces, ...texts }, isReadable: true }
  },
}

const realtimeSecrets: SealedTable = {
  kind: 'realtime_secrets',
  versions: `
    SELECT DISTINCT substr(session, 1, instr(session, '.') - 1) FROM (
      SELECT * FROM (SELECT session FROM realtime_secrets ORDER BY hash LIMIT 1000)
      UNION SELECT * FROM (SELECT session FROM realtime_secrets ORDER BY hash DESC LIMIT 1000))`,
  list: `
    SELECT hash AS id, iif(session NOT LIKE @version || '.%', octet_length(session), 0) AS bytes
    FROM realtime_secrets WHERE hash > @after ORDER BY hash LIMIT ${REENCRYPTION_BATCH}`,
  find: 'SELECT hash, session FROM realtime_secrets WHERE hash = ?',
  update: 'UPDATE realtime_secrets SET session = @session WHERE hash = @hash',
  reseal: (row, keyring) => resealTexts(row, keyring, ['session'], () => placeOfSession(String(row.hash))),
}

const jobs: SealedTable = {
  kind: 'jobs',
  versions: `
    WITH ends AS (
      SELECT * FROM (SELECT result_url, callback_url, callback_secret FROM jobs ORDER BY id LIMIT 1000)
      UNION SELECT * FROM (SELECT result_url, callback_url, callback_secret FROM jobs ORDER BY id DESC LIMIT 1000)
    ), sealed (text) AS (
      SELECT result_url FROM ends UNION SELECT callback_url FROM ends UNION SELECT callback_secret FROM ends
    )
    SELECT DISTINCT substr(text, 1, instr(text, '.') - 1) FROM sealed WHERE text IS NOT NULL`,
  list: `
    SELECT id, iif(
      coalesce(result_url NOT LIKE @version || '.%', 0) OR coalesce(callback_url NOT LIKE @version || '.%', 0)
        OR coalesce(callback_secret NOT LIKE @version || '.%', 0),
      coalesce(octet_length(result_url), 0) + coalesce(octet_length(callback_url), 0)
        + coalesce(octet_length(callback_secret), 0),
      0) AS bytes
    FROM jobs WHERE id > @after ORDER BY id LIMIT ${REENCRYPTION_BATCH}`,
  find: 'SELECT id, result_url, callback_url, callback_secret FROM jobs WHERE id = ?',
  update: `
    UPDATE jobs SET result_url = @result_url, callback_url = @callback_url, callback_secret = @callback_secret
    WHERE id = @id`,
  reseal: (row, keyring) =>
    resealTexts(row, keyring, ['result_url', 'callback_url', 'callback_secret'], column =>
      placeOfJob(String(row.id), column),
    ),
}

/** All of them, in the order in which they are sealed anew. */
export const SEALED_TABLES: readonly SealedTable[] = [providerKeys, responses, realtimeSecrets, jobs]

const sealedIn = (row: Row, nonce: string, ciphertext: string): Sealed =>
  ({ version: row.master_key, nonce: row[nonce], ciphertext: row[ciphertext] }) as Sealed

/** Columns that hold texts of `sealText`, or NULL. */
function resealTexts(
  row: Row,
  keyring: Keyring,
  columns: readonly string[],
  placeOf: (column: string) => string,
): Resealed {
  const changed: Record<string, unknown> = {}
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
