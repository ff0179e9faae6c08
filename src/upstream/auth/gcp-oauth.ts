/** OAuth for a service account: its key is traded for tokens that last an hour, one for all requests of a credential. */

import { sign } from 'node:crypto'
import { promisify } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { Credential } from '../../core/provider-settings.ts'
import type { Egress } from '../../lib/egress.ts'
import { type ServiceAccount, serviceAccount } from '../../secrets/credential.ts'
import { upstreamError } from '../../wire/upstream-error.ts'
import { AccessToken, type Grant } from './access-token.ts'
import { callEndpoint, formRequest, grantIn } from './endpoint.ts'
import { type Strategy, setBearer } from './strategy.ts'

const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const MAX_TOKENS = 1000

/** The strategy over one token endpoint. Synchronous while a token lasts. */
export function oauth(request: typeof requestToken): Strategy<'gcp-oauth'> {
  /** Tokens by credential. They outlive a configuration that is replaced. */
  const tokens = new LRUCache<string, AccessToken>({ max: MAX_TOKENS })
  /** A credential belongs to one provider, and so to one scope. */
  const byCredential = new WeakMap<Credential, AccessToken>()

  const tokenOf = (credential: Credential, scope: string): AccessToken => {
    let token = byCredential.get(credential)
    if (!token) {
      const name = `${credential.source} ${scope} ${credential.secret}`
      token = tokens.get(name) ?? accessToken(credential, scope, request)
      tokens.set(name, token)
      byCredential.set(credential, token)
    }
    return token
  }

  return (out, { scope }, credential, clock, egress) => {
    const token = tokenOf(credential, scope).take(clock, egress)
    return typeof token === 'string' ? setBearer(out, token) : token.then(fetched => setBearer(out, fetched))
  }
}

/** The strategy over Google's token endpoint, with one cache of tokens for the process. */
export const gcpOauth = oauth(requestToken)

function accessToken({ source, secret }: Credential, scope: string, request: typeof requestToken): AccessToken {
  const parsed = serviceAccount(secret)
  if ('issue' in parsed) throw upstreamError(401, { message: `The credential cannot be used: ${parsed.issue}.` })
  const account = parsed.value
  // An address that a customer names is not ours to call.
  const tokenUri = (source === 'platform' && account.tokenUri) || TOKEN_URI
  return new AccessToken((now, egress) => request(account, { scope, tokenUri, now, egress }))
}

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const LIFETIME_S = 3600
const DEADLINE_MS = 10_000
const signAside = promisify(sign)

/** A token request: scope, endpoint and time limit (10 s by default). */
interface TokenRequest {
  readonly scope: string
  readonly tokenUri: string
  /** Unix milliseconds. */
  readonly now: number
  readonly deadlineMs?: number
  readonly egress?: Egress | undefined
}

/**
 * Gets a service account's access token from a token endpoint (RFC 7523, docs/contributing/wire-sources.md#gemini). Rejects
 * with a GatewayError that may fail over and holds nothing of the key.
 */
export async function requestToken(
  account: ServiceAccount,
  { scope, tokenUri, now, deadlineMs = DEADLINE_MS, egress }: TokenRequest,
): Promise<Grant> {
  const iat = Math.floor(now / 1000)
  const claims = { iss: account.email, scope, aud: tokenUri, iat, exp: iat + LIFETIME_S }
  const assertion = await jwt({ alg: 'RS256', typ: 'JWT', kid: account.keyId }, claims, account)
  const answer = await callEndpoint(tokenUri, {
    ...formRequest({ grant_type: GRANT_TYPE, assertion }),
    deadlineMs,
    egress,
  })
  return grantIn(answer, assertion)
}

/** Signed in a thread of Node's pool: it takes milliseconds. */
async function jwt(header: object, claims: object, { key }: ServiceAccount): Promise<string> {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  const signature = await signAside('RSA-SHA256', Buffer.from(signed), key)
  return `${signed}.${signature.toString('base64url')}`
}
