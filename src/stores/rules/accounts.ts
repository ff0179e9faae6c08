/** Rules for changes of organizations, projects, members and keys, and the contents of their records. */

import type { Compliance } from '../../core/policy.ts'
import type { KeyKind, KeyRecord, ProjectChanges, Role } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'

/** docs/contract.md#access-rules. */
const SESSION_MS = 900_000
const USUAL_TTL_MS = 60_000

/** Expiry of a new key in Unix milliseconds; null for never. */
export const expiryOf = (kind: KeyKind, given: number | undefined, now: number): number | null =>
  given ?? (kind === 'session' ? now + SESSION_MS : null)

/** `expiresAt` in Unix milliseconds; null for never. A revoked key stays `revoked` after its expiry. */
export function keyStatus(
  { revoked, expiresAt }: { readonly revoked: boolean; readonly expiresAt: number | null },
  now: number,
): KeyRecord['status'] {
  if (revoked) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}

/** Throws a 400 for a key that cannot be rolled. */
export function checkRoll(id: string, isSession: boolean, status: KeyRecord['status']): void {
  if (isSession) throw errors.badRequest(`"${id}" is a session. Begin a new session with its key.`)
  if (status !== 'active') throw errors.badRequest(`The key "${id}" is ${status}: create a new one instead.`)
}

/** Cache lifetime of a project after a change, in milliseconds; null when off. */
export const ttlOf = (change: ProjectChanges['cacheTtlMs'], was: number | null): number | null =>
  change === 'on' ? (was ?? USUAL_TTL_MS) : change === undefined ? was : change

/** docs/contract.md#response-cache: off for organizations on a coding plan. */
export const cacheTtl = (ttlMs: number | null, planned: boolean): number | undefined =>
  planned ? undefined : (ttlMs ?? undefined)

/** Throws a 400 where a project would store responses and its organization retains no data. */
export function checkResponses(responsesMs: number | null, compliance: Compliance | null): void {
  if (responsesMs === null || !compliance?.noLogging) return
  throw errors.badRequest(
    'The organization has zero data retention, so its projects cannot store responses or content.',
  )
}

/** The 400s for names that are in use. */
export const nameTaken = {
  organization: (name: string) => errors.badRequest(`An organization "${name}" already exists; choose another name.`),
  project: (name: string) =>
    errors.badRequest(`The organization already has a project "${name}"; choose another name.`),
  member: (email: string, organization: string) =>
    errors.badRequest(`${email} is already a member of "${organization}".`),
}

/** Throws a 400 when a member of this role is the only one of `owners`. */
export function checkOwners(role: Role, owners: number): void {
  if (role !== 'owner' || owners > 1) return
  throw errors.badRequest('This is the only owner of the organization; make another member an owner first.')
}

/** Name of the parent key of operator sessions, one per project. */
export const OPERATOR_KEY = 'gatewayctl'
/** Time within which a request must begin; it may last longer. */
export const OPERATOR_SESSION_MS = 60_000

/** The 400 where the parent key of a project's operator sessions is revoked. */
export const operatorKeyRevoked = (project: string) =>
  errors.badRequest(`The key "${OPERATOR_KEY}" of the project ${project} is revoked. Use a key of the project.`)

/** Expired sessions deleted at a time, when their key begins another one. */
export const SESSIONS_FORGOTTEN = 20
/** Live sessions per key. Beginning another one ends those that expire first. */
export const MAX_SESSIONS = 10_000
