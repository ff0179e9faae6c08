/** Callers by JWT: tokens of the operator's identity provider in place of keys (RFC 7519, OpenID Connect Discovery 1.0). */

import { hash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Principal, Role, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import { jsonIn, objectIn } from '../json/json.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { upTo } from '../lib/up-to.ts'
import { CLOCK_TOLERANCE_SECONDS, claimAt, type IssuerServices, refused, verifiedToken } from '../policy/issuer.ts'

const MAX_TOKEN_CHARACTERS = 8192
const MAX_TOKENS = 10_000
const MAX_CLAIM_CHARACTERS = 256
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
type CallerServices = IssuerServices & Pick<Services, 'keys' | 'issuerKeys'>

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
  readonly #services: CallerServices
  readonly #known = new LRUCache<string, Known>(upTo(MAX_TOKENS))

  /** Throws for an issuer without a project. */
  constructor(issuers: readonly Issuer[], services: CallerServices) {
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
    if (token.length > MAX_TOKEN_CHARACTERS) throw refused(`it has more than ${MAX_TOKEN_CHARACTERS} characters.`)
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
    const payload = await verifiedToken(token, given, this.#services)
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

/** Reads the claim `iss` without trust. */
function issuerIn(token: string): string | undefined {
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')
  const { iss } = objectIn(jsonIn(claims))
  return typeof iss === 'string' ? iss : undefined
}

/** Reads a claim as a text. Throws 401 for another value. */
function claim(payload: JWTPayload, path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  const value = claimAt(payload, path)
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > MAX_CLAIM_CHARACTERS) {
    throw refused(`the claim "${path}" must be a text of 1 to ${MAX_CLAIM_CHARACTERS} characters.`)
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
