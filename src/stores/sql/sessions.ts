/** End-user sessions, which keys begin. They are no operator changes, and not part of the audit log. */
import type { SessionStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { MAX_SESSIONS, SESSIONS_FORGOTTEN } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import { changeLimit, forgetLimits } from './limits.ts'
import { attempt, type Sql } from './sql.ts'

/** No request that counts against a limit of the session runs. */
const IDLE = 'NOT EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id AND held > 0)'
const OVER = `
  SELECT id FROM keys WHERE parent_id = $1 AND expires_at <= $2 AND ${IDLE}
  ORDER BY expires_at LIMIT ${SESSIONS_FORGOTTEN}`
const BEYOND = `
  SELECT id FROM keys WHERE ${IDLE} AND id IN (
    SELECT id FROM keys WHERE parent_id = $1
    ORDER BY expires_at DESC LIMIT ${SESSIONS_FORGOTTEN} OFFSET ${MAX_SESSIONS - 1}
  )`
const INSERT = `
  INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at, expires_at, parent_id, models)
  VALUES ($1, $2, $3, 'session', $4, $5, $6, $7, $8, $9, $10)`

/**
 * Makes the store of sessions: rows of `keys` whose `parent_id` is the key that began them. `forget` receives the hashes
 * of expired secrets.
 */
export const sqlSessions = (db: Sql, clock: () => number, forget: (hash: string) => void): SessionStore => ({
  async begin({ principal, customer, models, limit, expiresAt }) {
    const { keyId: parent, projectId: project, member, issuer } = principal
    const id = shortId()
    const { key, hash, preview } = newSecret('session')
    // The store has no member for the caller of a token.
    const creator = issuer === undefined ? member?.id : undefined
    const facts = [id, project, customer, hash, preview, creator ?? null]
    const bounds = [expiresAt, parent, models ? JSON.stringify(models) : null]
    const work = async (sql: Sql): Promise<string[]> => {
      const now = clock()
      const over = await sql.query<{ id: string }>(OVER, [parent, now])
      const beyond = await sql.query<{ id: string }>(BEYOND, [parent])
      const removed: string[] = []
      for (const old of new Set([...over, ...beyond].map(({ id }) => id))) removed.push(...(await remove(sql, old)))
      await sql.query(INSERT, [...facts, now, ...bounds])
      if (limit !== undefined) await changeLimit(sql, 'session', id, { set: { amount: limit } }, now)
      return removed
    }
    const removed = await attempt(() => db.transaction(work))
    for (const hash of removed) forget(hash)
    return { id, key }
  },
})

/** Within a transaction: deletes a session and its limits. Returns the hash of its secret. */
async function remove(sql: Sql, id: string): Promise<string[]> {
  const deleted = await sql.query<{ hash: string }>('DELETE FROM keys WHERE id = $1 RETURNING hash', [id])
  await forgetLimits(sql, id)
  return deleted.map(({ hash }) => hash)
}
