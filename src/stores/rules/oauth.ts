/** When codes, tokens, grants and clients are in force, and how many there may be. */

import type { ClientRecord, GrantRecord, OAuthClient, Principal } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { DAY_MS } from '../../lib/period.ts'

/** Milliseconds for which ended tokens are kept, so that their late reuse is detected. */
export const KEPT_MS = DAY_MS
/** A client unused for this long is removed. A client that acts for a key is removed with its key. */
export const CLIENT_MS = 30 * DAY_MS

/** Registered clients of all together. Beyond it the oldest goes that has no grant in force, an unused one first. */
export const MAX_CLIENTS = 10_000
/** Clients that act for one key. */
export const MAX_CLIENTS_OF_KEY = 20
/** Grants of one key that are in force: the oldest ends where another one begins. */
export const MAX_GRANTS_OF_KEY = 100
/** Tokens of each kind that are kept of one grant: the oldest are forgotten. */
export const MAX_TOKENS_OF_GRANT = 100
/** Login codes of one member that are in force: the oldest ends. */
export const MAX_LOGIN_CODES = 10
/** Rows of each kind removed per sweep, so that it does not block other requests. */
export const SWEEP_ROWS = 500

interface Once {
  readonly usedAt: number | null
  readonly expiresAt: number
}
/** Result of presenting a code or token. */
type Presentation = 'accepted' | 'refused' | 'reused'

/** `reused` for a code or token that has been used up, even where it has expired since. */
export function presented({ usedAt, expiresAt }: Once, now: number): Presentation {
  if (usedAt !== null) return 'reused'
  return expiresAt > now ? 'accepted' : 'refused'
}

/** The scopes of a new access token; undefined where more is wanted than was granted. */
export function narrowed(
  granted: readonly string[],
  wanted: readonly string[] | undefined,
): readonly string[] | undefined {
  if (!wanted) return granted
  return wanted.every(scope => granted.includes(scope)) ? wanted : undefined
}

/** When a made-up key ends: with its grant. Its name says whose client has it. */
export const keyNameOf = (clientName: string): string => `mcp: ${clientName}`.slice(0, 200)

/** The scopes of a space-separated list (RFC 6749 section 3.3). */
export const scopesOf = (text: string): string[] => text.split(' ').filter(Boolean)

/** The 503 where `MAX_CLIENTS` are registered and each has a grant in force, or acts for a key. */
export const clientsFull = () => errors.storeUnavailable(new Error('there are too many OAuth clients that are in use'))
/** The 400 beyond `MAX_CLIENTS_OF_KEY`. */
export const tooManyOfKey = () =>
  errors.badRequest(`The key has ${MAX_CLIENTS_OF_KEY} clients already; remove one with \`gatewayctl oauth clients\`.`)
/** The 400 for sessions, and for keys that are revoked, expired or of another kind. */
export const notRegular = (id: string) =>
  errors.badRequest(`"${id}" is not a live regular key. A client can act only for such a key.`)
/** The 404 for an unknown client. */
export const noSuchClient = (id: string) =>
  errors.notFound(`There is no OAuth client with the id "${id}". List the clients to see their ids.`)
/** The 404 for a grant that is unknown or has ended. */
export const noSuchGrant = (id: string) =>
  errors.notFound(`There is no grant in force with the id "${id}". List the grants to see their ids.`)
/** The 400 where `loginProject` finds none. */
export const noProject = (member: string) =>
  errors.badRequest(`${member} has access to several projects, or to none. Name a project.`)
/** The 400 for a project outside of a member's access. */
export const noAccess = (member: string, project: string) =>
  errors.badRequest(`${member} has no access to the project "${project}".`)

/** The project that a login without one is for. */
export const loginProject = <P extends { readonly name: string }>(projects: readonly P[]): P | undefined =>
  projects.length === 1 ? projects[0] : projects.find(({ name }) => name === 'default')

const iso = (at: number): string => new Date(at).toISOString()

/** A client as operators see it, without its secret's hash. */
export const clientRecord = (client: OAuthClient): ClientRecord => ({
  clientId: client.id,
  name: client.name,
  redirectUris: client.redirectUris,
  grantTypes: client.grantTypes,
  key: client.keyId,
  scope: client.scopes.join(' '),
  createdAt: iso(client.createdAt),
  usedAt: client.usedAt === null ? null : iso(client.usedAt),
})

interface GrantFacts {
  readonly id: string
  readonly clientId: string
  readonly clientName: string
  readonly keyId: string
  readonly member: string | null
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly usedAt: number | null
}
/** A grant as operators see it; `lastUsedAt` is null before its first token is used. */
export const grantRecord = (grant: GrantFacts): GrantRecord => ({
  id: grant.id,
  client: grant.clientId,
  clientName: grant.clientName,
  key: grant.keyId,
  member: grant.member,
  scope: grant.scopes.join(' '),
  createdAt: iso(grant.createdAt),
  lastUsedAt: grant.usedAt === null ? null : iso(grant.usedAt),
})

/** Returns the author that the audit log shows for a client's changes. */
export const actorOf = (clientId: string): string => `client ${clientId}`

/** Whether a key that is not revoked may be used now. */
export const isAdmitted = ({ access, archived, expiresAt }: Principal, now: number): boolean =>
  access && !archived && (expiresAt === undefined || expiresAt > now)

/** Whether a key may be used now, and is one that others can act for. */
export const isLiveKey = (principal: Principal, now: number): boolean =>
  principal.kind === 'key' && !principal.session && !principal.token && isAdmitted(principal, now)

/** Whom an access token makes: its key, for less, and until its own end. */
export const tokenPrincipal = (principal: Principal, scopes: string, expiresAt: number): Principal => ({
  ...principal,
  token: { scopes: scopesOf(scopes), expiresAt },
})
