/** Tokens of identity providers: their keys and metadata, and what is checked (RFC 7519, OpenID Connect Discovery 1.0). */
import { createRemoteJWKSet, customFetch, type JWTPayload, errors as jose, jwtVerify } from 'jose'
import type { DocumentSource, Services } from '../core/ports.ts'
import { isObject } from '../json/json.ts'
import { errors } from '../lib/error.ts'

/** HMAC is missing: its secret would be the public key. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Difference of clocks that is accepted. */
export const CLOCK_TOLERANCE_SECONDS = 30
/** Time for one answer of an issuer. */
export const FETCH_TIMEOUT_MS = 5000
/** Least time between two reads of a key set because of an unknown key. */
const COOLDOWN_MS = 30_000
/** Age at which metadata is read again, and a key set beside the requests that use it. */
const REFRESH_MS = 600_000

/** An identity provider, and the name by which its tokens are meant for this gateway. */
interface Issuer {
  readonly issuer: string
  readonly audience: string | string[]
  /** Address of its keys; its metadata names them by default. */
  readonly jwks_uri?: string | undefined
}
/** Services that reading an issuer's keys needs. */
export type IssuerServices = Pick<Services, 'documents' | 'now' | 'log'>

/** Resolves with the claims of a token. Rejects with 401 for one that is not valid, and 503 without the issuer's keys. */
export async function verifiedToken(token: string, given: Issuer, services: IssuerServices): Promise<JWTPayload> {
  const { issuer, audience } = given
  const currentDate = new Date(services.now())
  const rules = { issuer, audience, currentDate, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_SECONDS }
  try {
    const keys = await keySetOf(given, services)
    const verified = await jwtVerify(token, keys, { ...rules, requiredClaims: ['exp', 'sub'] })
    return verified.payload
  } catch (thrown) {
    throw errorOf(thrown, given)
  }
}

/** A 401 with what is wrong of a token. */
export const refused = (why: string) => errors.invalidToken(`The token is not valid: ${why}`)

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
export function claimAt(payload: JWTPayload, path: string): unknown {
  if (payload[path] !== undefined) return payload[path]
  let value: unknown = payload
  for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part]
  return value
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
  const uri = given ?? keysIn(await metadataOf(issuer, { now, documents }))
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

function keysIn({ jwks_uri }: IssuerMetadata): string {
  if (typeof jwks_uri !== 'string') throw new Error('the metadata of the issuer has no jwks_uri')
  return jwks_uri
}

/** Metadata of an issuer, unchecked: OpenID Connect Discovery 1.0, section 3. */
export type IssuerMetadata = { readonly [name: string]: unknown }
const metadata = new Map<string, { readonly read: Promise<IssuerMetadata>; readonly at: number }>()

/** Resolves with the metadata of an issuer, which every caller shares. Rejects with what kept it from being read. */
export function metadataOf(issuer: string, { documents, now }: Omit<IssuerServices, 'log'>): Promise<IssuerMetadata> {
  const kept = metadata.get(issuer)
  if (kept && kept.at + REFRESH_MS > now()) return kept.read
  const read = discovered(issuer, documents)
  metadata.set(issuer, { read, at: now() })
  read.catch(() => metadata.delete(issuer))
  return read
}

/** Reads it at the address that OpenID Connect Discovery 1.0, section 4, says. */
async function discovered(issuer: string, documents: DocumentSource): Promise<IssuerMetadata> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { status, text } = await documents.readTrusted(url, FETCH_TIMEOUT_MS)
  if (status !== 200) throw new Error(`${url} answered ${status}`)
  const read: unknown = JSON.parse(text)
  if (!isObject(read)) throw new Error(`${url} is no object`)
  return read
}
