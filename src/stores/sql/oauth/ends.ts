/** Ends grants, and the keys that were made for them alone. */
import type { Actor } from '../../../core/ports.ts'
import type { Change } from '../audit.ts'
import { type Flag, first } from '../sql.ts'
import { findGrant } from './records.ts'

const END = 'UPDATE oauth_grants SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING key_id, made_key'
const REVOKE_KEY = 'UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'

/**
 * Ends a grant that is in force. It is kept, with `revoked_at`, until it is swept. Without an actor the audit log gets
 * no line.
 */
export async function endGrant({ sql, note, now }: Change, id: string, actor?: Actor): Promise<void> {
  const found = await findGrant(sql, id)
  const ended = await first<{ key_id: string; made_key: Flag }>(sql, END, [id, now()])
  if (!found || !ended) return
  if (ended.made_key) await sql.query(REVOKE_KEY, [ended.key_id, now()])
  if (actor === undefined) return
  const line = { actor, action: 'oauth.revoke', organization: found.organization, subject: id }
  await note({ ...line, was: found.record, became: null })
}
