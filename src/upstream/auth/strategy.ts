/** What the strategies of `auth.scheme` work on. */
import type { Auth, Credential } from '../../core/catalog.ts'
import type { Call } from '../transport.ts'

/** A request as it will be sent; a strategy adds the credential to its path or headers. */
export interface Outgoing {
  readonly baseUrl: string
  path: string
  readonly headers: Record<string, string>
  readonly body: Call['body']
}

/** Unix milliseconds. */
export type Clock = () => number

/** Gives `out` back, changed; a promise only where something must be fetched first. Fails with a GatewayError. */
export type Strategy<S extends Auth['scheme']> = (
  out: Outgoing,
  auth: Extract<Auth, { scheme: S }>,
  credential: Credential,
  clock: Clock,
) => Outgoing | Promise<Outgoing>
