/** Ends grants, and the keys that were made for them alone. */
import type { Actor, GrantRecord } from '../../../../core/ports.ts'
import { grantRecord } from '../../../rules/oauth.ts'
import type { Grant } from '../rows.ts'
import type { Tables } from '../tables.ts'

/** Within `run`: ends a grant that is in force, and the key that was made for it. Without an actor the audit log gets no line. */
export type End = (grant: Grant, actor?: Actor) => void

/** The organization of a key of any status. */
export const orgOf = ({ keys, projects }: Tables, keyId: string): string | undefined =>
  projects.get(keys.get(keyId)?.projectId ?? '')?.orgId

/** A grant as the operator and the audit log see it. */
export function recordOf(tables: Tables, grant: Grant): GrantRecord {
  const creator = tables.keys.get(grant.keyId)?.createdBy
  return grantRecord({ ...grant, member: (creator && tables.members.get(creator)?.email) || null })
}

/** The `End` of these tables. */
export const endIn =
  (tables: Tables): End =>
  (grant, actor) => {
    if (grant.revokedAt !== null) return
    const now = tables.now()
    tables.grants.set(grant.id, { ...grant, revokedAt: now })
    const key = tables.keys.get(grant.keyId)
    if (grant.madeKey && key) tables.keys.set(key.id, { ...key, revokedAt: key.revokedAt ?? now })
    if (actor === undefined) return
    const note = { actor, action: 'oauth.revoke', organization: orgOf(tables, grant.keyId) ?? null, subject: grant.id }
    tables.note({ ...note, was: recordOf(tables, grant), became: null })
  }
