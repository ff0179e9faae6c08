/** Gets a service account's access token from a token endpoint (RFC 7523, docs/contributing/wire-sources.md#gemini). */
import { sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Egress } from '../../lib/egress.ts'
import type { ServiceAccount } from '../../secrets/credential.ts'
import type { Grant } from './access-token.ts'
import { callEndpoint, formRequest, grantIn } from './endpoint.ts'

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

/** Rejects with a GatewayError that may fail over and holds nothing of the key. */
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
