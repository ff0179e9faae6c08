/** Stored responses. Their texts are sealed; the columns that find and count them are not. */
import type { Sealed } from '../../core/policy.ts'
import type { ResponseOwner, ResponseRecord, ResponseStore, ResponseTurn } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { PRUNED_RESPONSES, responseBytes, responsePlace } from '../rules/responses.ts'
import type { SealingOptions } from '../sealing.ts'
import { first, rejectingWith, type Sql, type SqlValue } from './sql.ts'

/** Later than any response was made. */
const LAST_MS = Number.MAX_SAFE_INTEGER

const attempt = rejectingWith(errors.responsesUnavailable)

interface TurnRow {
  previous_id: string | null
  created_at: bigint
  master_key: string
  turn_nonce: Buffer
  turn: Buffer
}
interface Row extends TurnRow {
  answer_nonce: Buffer
  answer: Buffer
}

/** SQL that sums and removes the responses of an organization, or of a session, by its id. */
interface OwnedResponses {
  readonly bytes: string
  readonly dropOldest: string
}
const owned = (table: string, column: string): OwnedResponses => ({
  bytes: `SELECT bytes FROM ${table} WHERE ${column} = $1`,
  dropOldest: `
    DELETE FROM responses WHERE id = (SELECT id FROM responses WHERE ${column} = $1 ORDER BY created_at, id LIMIT 1)
    RETURNING bytes`,
})
const ofOrganization = owned('response_bytes', 'org_id')
const ofSession = owned('response_session_bytes', 'session_id')

const INSERT = `
  INSERT INTO responses
    (id, org_id, project_id, session_id, previous_id, created_at, bytes, master_key, answer_nonce, answer, turn_nonce,
      turn)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
const OWN = `
  id = $1 AND org_id = $2 AND project_id = $3 AND (CAST($4 AS text) IS NULL OR session_id = $4) AND created_at >= $5`
const FIND = `
  SELECT previous_id, created_at, master_key, turn_nonce, turn, answer_nonce, answer FROM responses WHERE ${OWN}`
const FIND_TURN = `SELECT previous_id, created_at, master_key, turn_nonce, turn FROM responses WHERE ${OWN}`
const REMOVE = `DELETE FROM responses WHERE ${OWN} RETURNING id`
/** The projects come first, since they are few: their id is an expression, so that no index of theirs is used. */
const PRUNE = `
  DELETE FROM responses WHERE id IN (
    SELECT responses.id FROM projects
    LEFT JOIN policies ON policies.org_id = projects.org_id
    JOIN responses ON responses.project_id = projects.id || '' AND responses.created_at < CASE
      WHEN projects.responses_ms IS NULL OR policies.compliance LIKE '%"noLogging":true%' THEN ${LAST_MS}
      ELSE CAST($1 AS bigint) - projects.responses_ms
    END
    LIMIT ${PRUNED_RESPONSES}
  ) RETURNING id`

/** Makes the `ResponseStore` over `responses`, bounded by organization and session. */
export function sqlResponses(db: Sql, { keyring, now }: SealingOptions): ResponseStore {
  const sealed = (record: ResponseRecord, org: string, column: 'turn' | 'answer'): Sealed =>
    keyring().seal(record[column], responsePlace(org, record.id, column))
  const turnOf = (row: TurnRow, id: string, { orgId }: ResponseOwner): ResponseTurn => {
    const sealed = { version: row.master_key, nonce: row.turn_nonce, ciphertext: row.turn }
    const turn = keyring().open(sealed, responsePlace(orgId, id, 'turn'))
    return { previousId: row.previous_id, turn }
  }

  return {
    async add(record, owner, share) {
      const { id, previousId, createdAt } = record
      const { orgId: org, projectId: project, session = null } = owner
      const bytes = responseBytes(record)
      if (bytes > share.bytes || (session !== null && bytes > share.session)) return false
      return attempt(async () => {
        const [answer, turn] = [sealed(record, org, 'answer'), sealed(record, org, 'turn')]
        const texts = [answer.nonce, answer.ciphertext, turn.nonce, turn.ciphertext]
        const row = [id, org, project, session, previousId, createdAt, bytes, turn.version, ...texts]
        return db.transaction(async sql => {
          const { dropped } = share
          const hasRoom = (of: OwnedResponses, id: string, most: number) => makeRoom(sql, of, id, most - bytes, dropped)
          if (session !== null && !(await hasRoom(ofSession, session, share.session))) return false
          if (!(await hasRoom(ofOrganization, org, share.bytes))) return false
          await sql.query(INSERT, row)
          return true
        })
      })
    },

    find: (id, owner, since) =>
      attempt(async () => {
        const row = await first<Row>(db, FIND, lookup(id, owner, since))
        if (!row) return undefined
        const sealed = { version: row.master_key, nonce: row.answer_nonce, ciphertext: row.answer }
        const answer = keyring().open(sealed, responsePlace(owner.orgId, id, 'answer'))
        return { id, createdAt: Number(row.created_at), answer, ...turnOf(row, id, owner) }
      }),

    findTurn: (id, owner, since) =>
      attempt(async () => {
        const row = await first<TurnRow>(db, FIND_TURN, lookup(id, owner, since))
        return row && turnOf(row, id, owner)
      }),

    remove: (id, owner, since) => attempt(async () => (await db.query(REMOVE, lookup(id, owner, since))).length > 0),

    prune: async () => (await db.query(PRUNE, [now()])).length,
  }
}

/** Removes the oldest until no more than `most` bytes are left; false where `dropped` are too few. */
async function makeRoom(
  sql: Sql,
  { bytes, dropOldest }: OwnedResponses,
  id: string,
  most: number,
  dropped: number,
): Promise<boolean> {
  let stored = Number((await first<{ bytes: bigint }>(sql, bytes, [id]))?.bytes ?? 0n)
  for (let count = 0; stored > most && count < dropped; count++) {
    const oldest = await first<{ bytes: bigint }>(sql, dropOldest, [id])
    if (!oldest) break
    stored -= Number(oldest.bytes)
  }
  return stored <= most
}

const lookup = (id: string, owner: ResponseOwner, since: number): readonly SqlValue[] => [
  id,
  owner.orgId,
  owner.projectId,
  owner.session ?? null,
  since,
]
