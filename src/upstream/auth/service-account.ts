/** Asks a token endpoint for an access token in the name of a service account (RFC 7523, wire/google.md section 1). */
import { sign } from 'node:crypto'
import { Agent } from 'undici'
import { errors, type GatewayError } from '../../core/error.ts'
import type { ServiceAccount } from '../../core/secret.ts'
import { redact, upstreamError } from '../../core/upstream-error.ts'
import type { Grant } from './access-token.ts'

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const LIFETIME_S = 3600
const DEADLINE_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

/** Tokens are asked for once an hour: no socket is kept. */
const dispatcher = new Agent({ pipelining: 0, maxResponseSize: MAX_ANSWER_BYTES, maxHeaderSize: 16 * 1024 })

export interface TokenRequest {
  readonly scope: string
  readonly tokenUri: string
  /** Unix milliseconds. */
  readonly now: number
  readonly deadlineMs?: number
}

/** Rejects with a GatewayError that may fail over and holds nothing of the key. */
export async function requestToken(
  account: ServiceAccount,
  { scope, tokenUri, now, deadlineMs = DEADLINE_MS }: TokenRequest,
): Promise<Grant> {
  const iat = Math.floor(now / 1000)
  const claims = { iss: account.email, scope, aud: tokenUri, iat, exp: iat + LIFETIME_S }
  const assertion = jwt({ alg: 'RS256', typ: 'JWT', kid: account.keyId }, claims, account)
  const { status, text } = await post(tokenUri, { grant_type: GRANT_TYPE, assertion }, deadlineMs)
  const answer = fieldsOf(text)
  if (status >= 400) throw refusal(status, answer, assertion)
  const { access_token: token, expires_in: seconds } = answer
  // It becomes a header.
  if (status !== 200 || typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw errors.invalidAnswer('its token endpoint gave no access token', status)
  }
  return { token, seconds: typeof seconds === 'number' && seconds > 0 ? seconds : 0 }
}

function jwt(header: object, claims: object, { key }: ServiceAccount): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
}

async function post(url: string, form: Record<string, string>, deadlineMs: number) {
  try {
    const { origin, pathname, search } = new URL(url)
    const { statusCode, body } = await dispatcher.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
      signal: AbortSignal.timeout(deadlineMs),
    })
    return { status: statusCode, text: await body.text() }
  } catch (thrown) {
    const { name, code } = thrown as { name?: unknown; code?: unknown }
    if (name === 'TimeoutError') throw errors.upstreamTimeout('access token')
    const why = typeof code === 'string' && !code.startsWith('UND_ERR') ? `: ${code}` : ''
    throw errors.unreachable(`its token endpoint cannot be reached${why}`, thrown)
  }
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** What a token endpoint blames on the request (RFC 6749 section 5.2) is the credential's fault, not the caller's. */
function refusal(status: number, answer: Record<string, unknown>, assertion: string): GatewayError {
  const said = [answer.error, answer.error_description].filter(part => typeof part === 'string').join(': ')
  // The assertion is a credential for as long as it lasts, and so is a part of it.
  const clean = redact(said, assertion)
    .replace(/\S{60,}/g, '***')
    .slice(0, 300)
  const passing = status >= 500 || status === 429 || status === 408
  return upstreamError(passing ? status : 401, {
    message: `The token endpoint of the provider answered with status ${status}${clean && `: ${clean}`}`,
  })
}
