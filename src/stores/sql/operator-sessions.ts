/** Operator sessions: one request at a time in a project, without one of its keys. */
import type { OperatorSessionStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { OPERATOR_KEY, OPERATOR_SESSION_MS, operatorKeyRevoked } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import type { AuditedTransaction } from './audit.ts'
import type { ProjectPlace } from './names.ts'
import { first, type Sql } from './sql.ts'

/** Stands, with the project's id, for the hash of the parent key: no secret hashes to it. */
const NO_HASH = `none: ${OPERATOR_KEY} of `

const INSERT = `
  INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at, expires_at, parent_id)
  VALUES ($1, $2, '${OPERATOR_KEY}', $3, $4, $5, $6, $7, $8)`
const DELETE = `
  DELETE FROM keys
  WHERE id = $1 AND parent_id IN (SELECT parents.id FROM keys AS parents WHERE parents.hash = '${NO_HASH}' || parents.project_id)
  RETURNING parent_id`
const CLOSE = `
  UPDATE keys SET expires_at = coalesce((SELECT max(expires_at) FROM keys WHERE parent_id = $1), $2) WHERE id = $1`

/** Makes the store of sessions: rows of `keys`, under one parent key for each project that authenticates nothing. */
export const sqlOperatorSessions = (changes: AuditedTransaction): OperatorSessionStore => ({
  begin: (project, actor) =>
    changes.run(async ({ sql, names, note }) => {
      const place = await names.project(project)
      const now = changes.now()
      const end = now + OPERATOR_SESSION_MS
      const parent = await parentIn(sql, place, now, end)
      await sql.query('DELETE FROM keys WHERE parent_id = $1 AND expires_at <= $2', [parent, now])
      await sql.query('UPDATE keys SET expires_at = $2 WHERE id = $1', [parent, end])
      const { key, hash, preview } = newSecret('session')
      const id = shortId()
      await sql.query(INSERT, [id, place.id, 'session', hash, preview, now, end, parent])
      const expiresAt = new Date(end).toISOString()
      const became = { project: place.name, expiresAt }
      const organization = place.org_id
      await note({ actor, action: 'sessions.begin', organization, subject: id, was: null, became })
      return { id, key, expiresAt }
    }),

  end: id =>
    changes.run(async ({ sql, now }) => {
      const deleted = await first<{ parent_id: string }>(sql, DELETE, [id])
      if (deleted) await sql.query(CLOSE, [deleted.parent_id, now()])
    }),
})

/** Id of the project's parent key of operator sessions. */
async function parentIn(sql: Sql, place: ProjectPlace, now: number, end: number): Promise<string> {
  const hash = NO_HASH + place.id
  const text = 'SELECT id, revoked_at FROM keys WHERE hash = $1'
  const known = await first<{ id: string; revoked_at: bigint | null }>(sql, text, [hash])
  if (known && known.revoked_at !== null) throw operatorKeyRevoked(place.name)
  if (known) return known.id
  const id = shortId()
  await sql.query(INSERT, [id, place.id, 'key', hash, 'none', now, end, null])
  return id
}
