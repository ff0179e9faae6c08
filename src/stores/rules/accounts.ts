/** What may become of organizations, projects, members and keys, and what their records say. */
import { errors } from '../../core/error.ts'
import type { KeyKind, KeyRecord, ProjectChanges, Role } from '../../core/ports.ts'

/** docs/contract.md#access-rules. */
const SESSION_MS = 900_000
const USUAL_TTL_MS = 60_000

/** When a new key ends, Unix milliseconds; null for never. */
export const expiryOf = (kind: KeyKind, given: number | undefined, now: number): number | null =>
  given ?? (kind === 'session' ? now + SESSION_MS : null)

export function keyStatus(
  { revoked, expiresAt }: { readonly revoked: boolean; readonly expiresAt: number | null },
  now: number,
): KeyRecord['status'] {
  if (revoked) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}

/** Throws a 400 for a key that has no successor. */
export function checkRoll(id: string, isSession: boolean, status: KeyRecord['status']): void {
  if (isSession) throw errors.badRequest(`"${id}" is a session: its key begins another one.`)
  if (status !== 'active') throw errors.badRequest(`The key "${id}" is ${status}: create a new one instead.`)
}

/** How long a project's answers are cached after a change, in milliseconds; null for not at all. */
export const ttlOf = (wanted: ProjectChanges['cacheTtlMs'], was: number | null): number | null =>
  wanted === 'on' ? (was ?? USUAL_TTL_MS) : wanted === undefined ? was : wanted

/** docs/contract.md#response-cache: off for organizations on a coding plan. */
export const cacheTtl = (ttlMs: number | null, planned: boolean): number | undefined =>
  planned ? undefined : (ttlMs ?? undefined)

export const nameTaken = {
  organization: (name: string) => errors.badRequest(`There is an organization "${name}" already; choose another name.`),
  project: (name: string) =>
    errors.badRequest(`The organization has a project "${name}" already; choose another name.`),
  member: (email: string, organization: string) =>
    errors.badRequest(`${email} is a member of "${organization}" already.`),
}

/** Throws a 400 when a member of this role is the only owner: one of `owners`. */
export function checkOwners(role: Role, owners: () => number): void {
  if (role !== 'owner' || owners() > 1) return
  throw errors.badRequest('This is the only owner of the organization; make another member an owner first.')
}

/** An operator's session belongs to a key of this name, one for each project. */
export const OPERATOR_KEY = 'gatewayctl'
/** A request begins within it, and may last longer. */
export const OPERATOR_SESSION_MS = 60_000

export const operatorKeyRevoked = (project: string) =>
  errors.badRequest(`The key "${OPERATOR_KEY}" of the project ${project} is revoked. Use a key of the project.`)

/** Sessions that are over leave so many at a time, when their key begins another one. */
export const SESSIONS_FORGOTTEN = 20
/** Live sessions that one key may have. When it begins another one, those that end first are over. */
export const MAX_SESSIONS = 10_000
