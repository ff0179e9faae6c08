/** Sign-in by an identity provider: authorization code with PKCE (OpenID Connect Core 1.0, RFC 7636, RFC 9207). */
import { hash, randomBytes } from 'node:crypto'
import { EncryptJWT, type JWTPayload, jwtDecrypt } from 'jose'
import { equals } from '../admin/guard.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import { printable } from '../lib/printable.ts'
import { urlOf } from '../lib/url.ts'
import { listOf, matcher } from '../limits/names.ts'
import {
  claimAt,
  FETCH_TIMEOUT_MS,
  type IssuerMetadata,
  type IssuerServices,
  metadataOf,
  verifiedToken,
} from '../policy/issuer.ts'
import { type Person, random } from './sessions.ts'

/** Time to sign in at the provider. */
export const SIGN_IN_SECONDS = 600
/** Characters of a name, of a provider's words, and of a page to return to. */
const MAX_NAME_CHARACTERS = 100
const MAX_REASON_CHARACTERS = 200
const MAX_PATH_CHARACTERS = 1000
const SEAL = { alg: 'dir', enc: 'A256GCM' }

/** `admin.oidc` of gateway.yaml. */
interface OidcSettings {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret?: string | undefined
  readonly redirect_url?: string | undefined
  readonly scopes: readonly string[]
  readonly allow: Readonly<Record<string, string | readonly string[]>>
}

/** A sign-in that a browser has begun. Its cookie holds it sealed. */
interface Begun {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** Address that the provider leads back to. */
  readonly redirect: string
  /** Page to return to. */
  readonly to: string
}

/** Signs people in by the settings in force. */
export class OidcSignIn {
  readonly #settings: () => OidcSettings | undefined
  readonly #services: IssuerServices
  /** Random in each process: a restart ends what has begun. */
  readonly #key = randomBytes(32)

  constructor(settings: () => OidcSettings | undefined, services: IssuerServices) {
    this.#settings = settings
    this.#services = services
  }

  /** Host of the provider, for people; undefined where none is configured. */
  get provider(): string | undefined {
    const issuer = this.#settings()?.issuer
    return issuer === undefined ? undefined : (urlOf(issuer)?.host ?? issuer)
  }

  /** Name that browsers use for the page behind a proxy. */
  get hostname(): string | undefined {
    const url = this.#settings()?.redirect_url
    return url === undefined ? undefined : urlOf(url)?.hostname
  }

  /** Whether the settings in force still allow a person. */
  allows({ claims }: Person): boolean {
    const settings = this.#settings()
    return settings !== undefined && isAllowed(claims, settings)
  }

  /** Resolves with the provider's address, and the value of the cookie. Rejects with 404 and 502. */
  async begin(redirect: string, to: string): Promise<{ readonly location: string; readonly sealed: string }> {
    const { settings, metadata } = await this.#provider()
    const begun: Begun = {
      ...{ state: random(), nonce: random(), verifier: random() },
      redirect: settings.redirect_url ?? redirect,
      to: to.length > MAX_PATH_CHARACTERS ? '/ui' : to,
    }
    const location = new URL(metadata.authorization_endpoint)
    const query = {
      response_type: 'code',
      client_id: settings.client_id,
      redirect_uri: begun.redirect,
      scope: settings.scopes.join(' '),
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: hash('sha256', begun.verifier, 'base64url'),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(query)) location.searchParams.set(name, value)
    const sealing = new EncryptJWT({ begun }).setProtectedHeader(SEAL).setExpirationTime(`${SIGN_IN_SECONDS}s`)
    return { location: location.href, sealed: await sealing.encrypt(this.#key) }
  }

  /**
   * Resolves with the person that the provider's answer names, and the page to return to. Rejects with 401 and 403 for the
   * person, and with 502 where the provider or the settings are at fault.
   */
  async finish(answer: URLSearchParams, sealed: string | undefined): Promise<{ person: Person; to: string }> {
    const begun = await this.#opened(sealed)
    if (!begun || !equals(begun.state)(answer.get('state') ?? '')) {
      throw errors.forbidden('This sign-in has ended, or another browser or tab began it. Sign in again.')
    }
    const { settings, metadata } = await this.#provider()
    const { issuer, client_id: audience } = settings
    if ((answer.get('iss') ?? issuer) !== issuer) throw errors.forbidden('Another identity provider has answered.')
    const code = answer.get('code')
    if (answer.has('error') || code === null) {
      const reason = answer.get('error') ?? 'no code'
      const words = shown(`${reason} ${answer.get('error_description') ?? ''}`)
      // RFC 6749, section 4.1.2.1: these say nothing of the person.
      if (/^(?:server_error|temporarily_unavailable)$/.test(reason)) throw failed(issuer, `failed: ${words}`)
      throw errors.forbidden(`The identity provider refused: ${words}.`)
    }
    const token = await this.#tokenOf(code, begun, settings, metadata)
    const claims = await verifiedToken(token, { issuer, audience }, this.#services).catch((thrown: unknown) => {
      throw asError(thrown).status === 503 ? failed(issuer, 'does not give its keys', RETRY, thrown) : thrown
    })
    if (claims.nonce !== begun.nonce || (claims.azp ?? audience) !== audience) {
      throw errors.forbidden('The identity provider answered another sign-in. Sign in again.')
    }
    const person = { name: nameOf(claims), claims }
    const seen = { person: person.name, issuer }
    if (!isAllowed(claims, settings)) {
      this.#services.log.warn(seen, 'sign-in refused')
      const asked = Object.keys(settings.allow).join(' and ')
      throw errors.forbidden(
        `${person.name} may not sign in here. admin.oidc.allow in gateway.yaml decides by the claims: ${asked || 'none'}.`,
      )
    }
    this.#services.log.info(seen, 'sign-in accepted')
    return { person, to: begun.to }
  }

  async #opened(sealed: string | undefined): Promise<Begun | undefined> {
    try {
      return (await jwtDecrypt(sealed ?? '', this.#key)).payload.begun as Begun
    } catch {
      return undefined
    }
  }

  async #provider(): Promise<{ settings: OidcSettings; metadata: Endpoints }> {
    const settings = this.#settings()
    if (!settings) throw errors.notFound('There is no such page.')
    const metadata = await metadataOf(settings.issuer, this.#services).catch((thrown: unknown) => {
      throw failed(settings.issuer, 'does not give its metadata', RETRY, thrown)
    })
    return { settings, metadata: endpointsIn(metadata, settings) }
  }

  async #tokenOf(code: string, begun: Begun, settings: OidcSettings, metadata: Endpoints): Promise<string> {
    const { issuer, client_id, client_secret } = settings
    const isBasic = client_secret !== undefined && metadata.takesBasic
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      ...{ code, redirect_uri: begun.redirect, code_verifier: begun.verifier },
      ...(!isBasic && { client_id, ...(client_secret !== undefined && { client_secret }) }),
    })
    const basic = isBasic ? [client_id, client_secret].map(formEncoded).join(':') : undefined
    const { token_endpoint: url } = metadata
    const { documents, log } = this.#services
    const { status, text } = await documents.readTrusted(url, FETCH_TIMEOUT_MS, `${form}`, basic).catch(thrown => {
      throw failed(issuer, 'cannot be reached at its token endpoint', RETRY, thrown)
    })
    if (status >= 500) throw failed(issuer, `answered ${status} at its token endpoint`)
    const read: unknown = await new Response(text).json().catch(() => undefined)
    const { id_token: token, error = '' } = (read ?? {}) as { readonly id_token?: unknown; readonly error?: unknown }
    if (status === 200 && typeof token === 'string') return token
    log.warn({ issuer, status, reason: error }, 'sign-in refused')
    if (error === 'invalid_grant') throw errors.forbidden('This sign-in was used or has expired. Sign in again.')
    throw failed(
      issuer,
      `gave no id token: it answered ${shown(`${status} ${error}`)}`,
      'The operator checks client_id, client_secret and scopes of admin.oidc; scopes need "openid".',
    )
  }
}

const RETRY = 'Sign in with the token, or later. The operator checks that it answers.'
/** Words of a provider, for people. */
const shown = (text: string): string => printable(text).slice(0, MAX_REASON_CHARACTERS).trim()
/** A 502 that names the provider, what it did, and the remedy. */
function failed(issuer: string, what: string, remedy = RETRY, cause?: unknown): GatewayError {
  const message = `The identity provider "${issuer}" ${what}. ${remedy}`
  return errors.issuerUnavailable(issuer, cause).with({ status: 502, message })
}

/** The part of a provider's metadata that is used. */
interface Endpoints {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  /** Whether the client's secret goes into a header, as by default. */
  readonly takesBasic: boolean
}

/** Throws 502 for a provider of another name, and for metadata without addresses. */
function endpointsIn(metadata: IssuerMetadata, { issuer }: OidcSettings): Endpoints {
  const { authorization_endpoint, token_endpoint, token_endpoint_auth_methods_supported: methods } = metadata
  if (metadata.issuer !== issuer) {
    throw failed(
      issuer,
      `calls itself "${shown(String(metadata.issuer))}"`,
      'The operator sets admin.oidc.issuer to that text.',
    )
  }
  if (!isAddress(authorization_endpoint) || !isAddress(token_endpoint)) {
    throw failed(issuer, 'names no endpoints in its metadata')
  }
  const isPosted = Array.isArray(methods) && methods.includes('client_secret_post')
  const takesBasic = !isPosted || (methods as unknown[]).includes('client_secret_basic')
  return { authorization_endpoint, token_endpoint, takesBasic }
}

const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value)

/** Encodes an id or a secret by RFC 6749, section 2.3.1. */
const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)

function isAllowed(claims: JWTPayload, { issuer, allow }: OidcSettings): boolean {
  const rules = Object.entries(allow)
  return claims.iss === issuer && rules.length > 0 && rules.every(([path, words]) => hasOne(claims, path, words))
}

function hasOne(claims: JWTPayload, path: string, words: string | readonly string[]): boolean {
  if (path === 'email' && !hasEmail(claims)) return false
  const folded = (text: string) => (path === 'email' ? text.toLowerCase() : text)
  const fits = matcher(listOf<string>(words).map(folded))!
  const values = [claimAt(claims, path)].flat()
  return values.some(value => typeof value === 'string' && fits(folded(value)))
}

/** Some providers say `"false"`; some say nothing, and verify all. */
const hasEmail = ({ email, email_verified }: JWTPayload): boolean =>
  typeof email === 'string' && String(email_verified ?? true) === 'true'

/** Returns the verified address, else the subject. People choose other claims themselves. */
const nameOf = (claims: JWTPayload): string =>
  printable(String(hasEmail(claims) ? claims.email : claims.sub)).slice(0, MAX_NAME_CHARACTERS)
