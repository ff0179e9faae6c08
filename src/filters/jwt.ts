/** Callers by JWT: tokens of the operator's identity provider in place of keys (RFC 7519, OpenID Connect Discovery 1.0). */

import { hash } from 'node:crypto'
import { createRemoteJWKSet, customFetch, type JWTPayload, errors as jose, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { DocumentSource, Principal, Role, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors, type GatewayError } from '../lib/error.ts'

/** HMAC is missing: its secret would be the public key. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const CLOCK_TOLERANCE_SECONDS = 30
const FETCH_TIMEOUT_MS = 5000
/** Least time between two reads of a key set because of an unknown key. */
const COOLDOWN_MS = 30_000
/** Age at which a key set is read again beside the requests that use it. */
const REFRESH_MS = 600_000
const MAX_TOKEN_LENGTH = 8192
const MAX_TOKENS = 10_000
/** Characters of a claim's value. */
const MAX_CLAIM_LENGTH = 256
const ROLES: readonly Role[] = ['owner', 'admin', 'developer']

const name = s.string({ minLength: 1 })
const address = s.string({ pattern: '^https?://' })

/** An identity provider whose tokens are believed. */
export const issuer = s.object({
  issuer: name,
  audience: s.either(name, s.array(name, { minItems: 1 })),
  jwks_uri: s.optional(address),
  claims: s.default(
    s.object({
      org: s.optional(name),
      project: s.optional(name),
      role: s.optional(name),
      end_user: s.default(name, 'sub'),
    }),
    {},
  ),
  default_project: s.optional(name),
})
type Issuer = Infer<typeof issuer>
type IssuerServices = Pick<Services, 'keys' | 'issuerKeys' | 'documents' | 'now' | 'log'>

/** The claims of a verified token that are used. */
interface Claims {
  readonly issuer: string
  readonly org: string | undefined
  readonly project: string
  readonly subject: string
  readonly role: Role
  /** Unix milliseconds. */
  readonly expiresAt: number
  readonly endUser: string | undefined
}
interface Known {
  readonly claims: Claims
  /** Finds the issuer's key in `KeyStore.find`. */
  readonly hash: string
  /** `principal` was made of it. */
  base?: Principal
  principal?: Principal
}

/** Tells a token from a key: its first part is base64url of a JSON object. */
export const isJwt = (secret: string): boolean => secret.startsWith('ey') && secret.split('.').length === 3

/** Finds the callers of tokens by the issuers that it is given. */
export class JwtCallers {
  readonly #issuers: ReadonlyMap<string, Issuer>
  readonly #services: IssuerServices
  readonly #known = new LRUCache<string, Known>({ max: MAX_TOKENS })

  /** Throws for an issuer without a project. */
  constructor(issuers: readonly Issuer[], services: IssuerServices) {
    for (const [at, { claims, default_project }] of issuers.entries()) {
      if (claims.project === undefined && default_project === undefined) {
        throw new Error(`auth.jwt[${at}] needs claims.project, default_project, or both`)
      }
    }
    this.#issuers = new Map(issuers.map(given => [given.issuer, given]))
    this.#services = services
  }

  /** Rejects with 401 for a token that is not valid, 403 for one without a project here, and 503 without the issuer's keys. */
  async find(token: string): Promise<Principal | undefined> {
    if (token.length > MAX_TOKEN_LENGTH) throw refused(`it has more than ${MAX_TOKEN_LENGTH} characters.`)
    const id = hash('sha256', token)
    let known = this.#known.get(id)
    if (!known || known.claims.expiresAt <= this.#services.now()) {
      known = await this.#verified(token)
      this.#known.set(id, known)
    }
    const base = await this.#services.keys.find(known.hash)
    if (!base) throw refused('the key of its issuer in this project was revoked.')
    if (known.base !== base) {
      known.base = base
      known.principal = callerOf(base, known.claims)
    }
    return known.principal
  }

  async #verified(token: string): Promise<Known> {
    const given = this.#issuerOf(token)
    const payload = await this.#payload(token, given)
    const claims = claimsOf(payload, given)
    return { claims, hash: await this.#keyOf(claims) }
  }

  /** Chosen by the claim that the signature of that issuer then proves. */
  #issuerOf(token: string): Issuer {
    const claimed = issuerIn(token)
    const given = claimed === undefined ? undefined : this.#issuers.get(claimed)
    if (!given) throw refused(`its issuer is none of ${[...this.#issuers.keys()].map(name => `"${name}"`).join(', ')}.`)
    return given
  }

  async #payload(token: string, given: Issuer): Promise<JWTPayload> {
    const { issuer, audience } = given
    const currentDate = new Date(this.#services.now())
    const rules = { issuer, audience, currentDate, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_SECONDS }
    try {
      const keys = await keySetOf(given, this.#services)
      const verified = await jwtVerify(token, keys, { ...rules, requiredClaims: ['exp', 'sub'] })
      return verified.payload
    } catch (thrown) {
      throw errorOf(thrown, given)
    }
  }

  async #keyOf({ issuer, org, project }: Claims): Promise<string> {
    try {
      return await this.#services.issuerKeys.keyOf(issuer, { org, project })
    } catch (thrown) {
      // The list of what exists is for operators, not for callers.
      if ((thrown as GatewayError).status !== 404) throw errors.storeUnavailable(thrown)
      throw errors.forbidden(`The token names the project "${project}"${org ? ` of "${org}"` : ''}, which is not here.`)
    }
  }
}

const refused = (why: string) => errors.invalidToken(`The token is not valid: ${why}`)

/** Reads the claim `iss` without trust. */
function issuerIn(token: string): string | undefined {
  try {
    const { iss } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString('utf8'))
    return typeof iss === 'string' ? iss : undefined
  } catch {
    return undefined
  }
}

function errorOf(thrown: unknown, { issuer, audience }: Issuer): unknown {
  if (thrown instanceof jose.JWTExpired) return refused('it has expired. Sign in again.')
  if (thrown instanceof jose.JWTClaimValidationFailed) {
    const { claim } = thrown
    if (claim === 'aud')
      return refused(
        `its audience is not ${[audience]
          .flat()
          .map(name => `"${name}"`)
          .join(' or ')}.`,
      )
    if (claim === 'nbf') return refused('it is not valid yet.')
    return refused(`the claim "${claim}" is missing or wrong.`)
  }
  if (thrown instanceof jose.JWKSNoMatchingKey) return refused(`"${issuer}" has no key that it is signed with.`)
  if (thrown instanceof jose.JWKSMultipleMatchingKeys) return refused('its header has no "kid", and several keys fit.')
  if (thrown instanceof jose.JWSSignatureVerificationFailed) return refused('its signature is wrong.')
  if (thrown instanceof jose.JOSEAlgNotAllowed) return refused(`it must be signed by one of ${ALGORITHMS.join(', ')}.`)
  if (thrown instanceof jose.JWSInvalid || thrown instanceof jose.JWTInvalid) return refused('it is no signed JWT.')
  if (thrown instanceof jose.JOSENotSupported) return refused('its key or algorithm is not supported.')
  return errors.issuerUnavailable(issuer, thrown)
}

/** Reads a claim by its name, else by a path of names with dots. */
function claim(payload: JWTPayload, path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  let value: unknown = payload[path]
  if (value === undefined) {
    value = payload
    for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part]
  }
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > MAX_CLAIM_LENGTH) {
    throw refused(`the claim "${path}" must be a text of 1 to ${MAX_CLAIM_LENGTH} characters.`)
  }
  return value
}

function claimsOf(payload: JWTPayload, { issuer, claims, default_project }: Issuer): Claims {
  const project = claim(payload, claims.project) ?? default_project
  if (project === undefined)
    throw errors.forbidden(`The token has no claim "${claims.project}", which names its project.`)
  const role = claim(payload, claims.role) ?? 'developer'
  if (!isRole(role))
    throw errors.forbidden(`The claim "${claims.role}" must be one of ${ROLES.join(', ')}, not "${role}".`)
  return {
    issuer,
    org: claim(payload, claims.org),
    project,
    subject: payload.sub!,
    role,
    expiresAt: (payload.exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
    endUser: claim(payload, claims.end_user),
  }
}

const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text)

/** The issuer's key of the project, with the rights and the end of the token. */
function callerOf(base: Principal, { issuer, subject, role, expiresAt, endUser }: Claims): Principal {
  const id = `jwt_${hash('sha256', `${issuer}\n${subject}`).slice(0, 24)}`
  return { ...base, issuer, endUser, member: { id, role }, expiresAt: Math.min(expiresAt, base.expiresAt ?? expiresAt) }
}

type KeySet = ReturnType<typeof createRemoteJWKSet>
/** The key sets of this process by their issuer: every endpoint and every reload shares them. */
const keySets = new Map<string, Promise<{ readonly keys: KeySet; readAt: number }>>()

/** Resolves with the key set of an issuer, which serves on while a newer one is read. */
async function keySetOf({ issuer, jwks_uri }: Issuer, { now, log, documents }: IssuerServices): Promise<KeySet> {
  const id = `${issuer}\n${jwks_uri ?? ''}`
  let found = keySets.get(id)
  if (!found) {
    found = open(issuer, jwks_uri, now, documents)
    keySets.set(id, found)
    found.catch(() => keySets.delete(id))
  }
  const set = await found
  if (set.readAt + REFRESH_MS <= now()) {
    set.readAt = now()
    const failed = (thrown: unknown) => log.warn({ issuer, err: thrown }, 'issuer keys not renewed')
    void set.keys.reload().catch(failed)
  }
  return set.keys
}

async function open(issuer: string, given: string | undefined, now: () => number, documents: DocumentSource) {
  const uri = given ?? (await discovered(issuer, documents))
  const keys = createRemoteJWKSet(new URL(uri), {
    cacheMaxAge: Number.POSITIVE_INFINITY,
    cooldownDuration: COOLDOWN_MS,
    async [customFetch](url) {
      const { status, text } = await documents.readTrusted(url, FETCH_TIMEOUT_MS)
      return new Response(status === 204 || status === 304 ? null : text, { status })
    },
  })
  return { keys, readAt: now() }
}

/** Finds the address of the key set as OpenID Connect Discovery 1.0, section 4, says. */
async function discovered(issuer: string, documents: DocumentSource): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { status, text } = await documents.readTrusted(url, FETCH_TIMEOUT_MS)
  if (status !== 200) throw new Error(`${url} answered ${status}`)
  const { jwks_uri } = JSON.parse(text) as { jwks_uri?: unknown }
  if (typeof jwks_uri !== 'string') throw new Error(`${url} has no jwks_uri`)
  return jwks_uri
}
