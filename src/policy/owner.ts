/** Decides who owns stored responses, videos, kept reasoning, cached answers and idempotency keys. */
import type { Principal, ResponseOwner } from '../core/ports.ts'

/**
 * The end user that a principal acts for: the session that a key began, or a session key of the operator. Undefined for one
 * that acts for its project.
 */
export const endUserOf = ({
  session,
  kind,
  keyId,
}: Pick<Principal, 'session' | 'kind' | 'keyId'>): string | undefined =>
  session?.id ?? (kind === 'session' ? keyId : undefined)

/** The project, or one end user of it: never another one's. */
export const ownerOf = (principal: Principal): ResponseOwner => ({
  orgId: principal.orgId,
  projectId: principal.projectId,
  session: endUserOf(principal),
})
