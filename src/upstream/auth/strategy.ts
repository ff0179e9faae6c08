/** Types shared by the strategies of `auth.scheme`. */
import type { Auth, Credential } from '../../core/provider-settings.ts'
import type { Egress } from '../../lib/egress.ts'
import type { Content } from '../content.ts'
import type { UpstreamRequest } from '../upstream-request.ts'

/** A request as it will be sent; a strategy adds the credential to its path or headers. */
export interface SignedRequest {
  readonly method: UpstreamRequest['method']
  readonly baseUrl: string
  path: string
  /** Names and values in turn; see `setHeader`. An object of names would be a new kind of object for each provider. */
  readonly headers: string[]
  readonly body: Content['body']
  /** The credential that a strategy added, as it may come back. */
  secret?: string
}

/** In the place of one that has the same name, as it is spelled. */
export function setHeader(headers: string[], name: string, value: string): void {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== name) continue
    headers[at + 1] = value
    return
  }
  headers.push(name, value)
}

/** Sets `authorization: Bearer …` and marks the token as the secret of the request; returns `out`. */
export function setBearer(out: SignedRequest, token: string): SignedRequest {
  setHeader(out.headers, 'authorization', `Bearer ${token}`)
  out.secret = token
  return out
}

/** Unix milliseconds. */
export type Clock = () => number

/** Gives `out` back, changed; a promise only where something must be fetched first. Fails with a GatewayError. */
export type Strategy<S extends Auth['scheme']> = (
  out: SignedRequest,
  auth: Extract<Auth, { scheme: S }>,
  credential: Credential,
  clock: Clock,
  egress?: Egress,
) => SignedRequest | Promise<SignedRequest>
