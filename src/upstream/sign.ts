/** How the gateway shows its credential to a provider: one named strategy per `auth.scheme`. */

import type { Cancellation } from '../core/cancel.ts'
import type { Auth, Credential } from '../core/provider-settings.ts'
import type { Provider, Target } from '../core/translator.ts'
import type { WireRequest } from '../core/wire.ts'
import type { Egress } from '../lib/egress.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { timerMs } from '../lib/timer.ts'
import { maskOf } from '../secrets/known.ts'
import type { Mask } from '../secrets/mask.ts'
import { findAwsKeys } from './auth/aws-default.ts'
import { awsSigv4 } from './auth/aws-sigv4.ts'
import { foundBy, processSources } from './auth/credential-sources.ts'
import { findGcpToken } from './auth/gcp-default.ts'
import { gcpOauth } from './auth/gcp-oauth.ts'
import { type Clock, type SignedRequest, type Strategy, setBearer, setHeader } from './auth/strategy.ts'
import { type Content, JSON_TYPE, sizeOf } from './content.ts'

const strategies: { [S in Auth['scheme']]: Strategy<S> } = {
  none: out => out,
  bearer: (out, _auth, { secret }) => setBearer(out, secret),
  header: (out, auth, { secret }) => {
    setHeader(out.headers, auth.header, auth.prefix === undefined ? secret : auth.prefix + secret)
    out.secret = secret
    return out
  },
  query: (out, auth, { secret }) => {
    const separator = out.path.includes('?') ? '&' : '?'
    out.path += `${separator}${encodeURIComponent(auth.parameter)}=${encodeURIComponent(secret)}`
    out.secret = secret
    return out
  },
  'aws-sigv4': foundBy<'aws-sigv4'>(
    ({ region, profile }, now, egress) => findAwsKeys({ region, profile, now, egress }),
    { given: awsSigv4, found: awsSigv4 },
  ),
  'gcp-oauth': foundBy<'gcp-oauth'>(({ scope }, now, egress) => findGcpToken({ scope, now }, processSources(egress)), {
    given: gcpOauth,
    found: (out, _auth, { secret }) => setBearer(out, secret),
  }),
}

/** Headers that every request to a provider carries, made once per provider. Nothing of the client's is among them. */
const commonHeaders = perObject((provider: Provider): readonly string[] => {
  const own = { 'content-type': JSON_TYPE, 'accept-encoding': 'identity', 'user-agent': 'model-gateway' }
  return Object.entries({ ...own, ...provider.headers }).flat()
})

/** Returns the headers of a request without a body. */
function withoutContentType(provider: Provider): string[] {
  const headers = commonHeaders(provider)
  const at = headers.indexOf('content-type')
  return headers.toSpliced(at, 2)
}

/** Returns the mask for the answer to a signed request; undefined when nothing secret was sent. */
export const maskOfSent = ({ secret = '' }: SignedRequest, provider: Provider): Mask | undefined =>
  maskOf(secret, provider.sentSecrets)

const NO_CREDENTIAL: Credential = Object.freeze({ id: '', source: 'platform', secret: '', fingerprint: '' })

/**
 * The request to `target`, with its credential; the content as it will be sent. A promise only where a token must be
 * fetched first. Throws, or rejects with, a GatewayError for a credential that cannot be used.
 */
export function sign(
  target: Target,
  request: WireRequest,
  requestId: string,
  { type, body }: Content,
  clock: Clock = Date.now,
): SignedRequest | Promise<SignedRequest> {
  const { region, provider } = target
  const usual = target.credential?.auth ?? provider.auth
  const auth = region && usual.scheme === 'aws-sigv4' ? { ...usual, region } : usual
  const headers = body === undefined ? withoutContentType(provider) : [...commonHeaders(provider)]
  if (type !== undefined && type !== JSON_TYPE) setHeader(headers, 'content-type', type)
  for (const name in request.headers) setHeader(headers, name, request.headers[name]!)
  if (Array.isArray(body)) setHeader(headers, 'content-length', String(sizeOf(body)))
  setHeader(headers, 'x-request-id', requestId)
  const { method = 'POST', path } = request
  const out: SignedRequest = { method, baseUrl: target.baseUrl ?? provider.baseUrl, path, headers, body }
  return applied(out, auth, target.credential, clock, provider.egress)
}

/** A request without a body to a provider itself, whatever its models; with its first credential, or another one. */
export function authorized(
  provider: Provider,
  path: string,
  headers: string[],
  credential: Credential | undefined = provider.credentials[0],
): SignedRequest | Promise<SignedRequest> {
  const { auth, baseUrl, egress } = provider
  const out: SignedRequest = { method: 'GET', baseUrl, path, headers, body: undefined }
  return applied(out, credential?.auth ?? auth, credential, Date.now, egress)
}

function applied(
  out: SignedRequest,
  auth: Auth,
  credential: Credential = NO_CREDENTIAL,
  clock: Clock,
  egress: Egress | undefined,
): SignedRequest | Promise<SignedRequest> {
  const apply = strategies[auth.scheme] as (
    ...args: [SignedRequest, Auth, Credential, Clock, Egress | undefined]
  ) => SignedRequest | Promise<SignedRequest>
  return apply(out, auth, credential, clock, egress)
}

/**
 * Waits for what several requests share, as a token is: one of them may be over before it comes. Rejects when the exchange
 * ends earlier, or after `ms` milliseconds.
 */
export function waitFor<T>(promise: Promise<T>, ms: number, signal: Cancellation): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer)
      signal.ignore(abort)
    }
    const fail = (error: GatewayError) => {
      settle()
      reject(error)
    }
    const timer = setTimeout(() => fail(errors.upstreamTimeout('total time')), timerMs(Math.max(1, ms)))
    const abort = () => fail(signal.reason ?? errors.aborted())
    promise.then(value => {
      settle()
      resolve(value)
    }, fail)
    signal.listen(abort)
  })
}
