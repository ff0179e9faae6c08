/** A request to the authorization server, with its options and the name of the server. */
import { addressKey } from '../core/address.ts'
import type { Exchange } from '../core/exchange.ts'
import type { OAuthOptions } from '../core/mcp.ts'
import type { Quota, Services } from '../core/ports.ts'
import { baseOf } from '../core/site.ts'
import { oauthError, tooOften } from './errors.ts'

/** Context of one request. */
export interface OAuthContext {
  readonly ex: Exchange
  readonly services: Services
  readonly options: OAuthOptions
  /** The name of this server that the request used: `https://gateway.example.com`. */
  readonly base: string
}

/** Throws 403 for a host that is no name of ours: links and metadata would name it. */
export function contextOf(ex: Exchange, services: Services): OAuthContext {
  return { ex, services, options: ex.snapshot.mcp.oauth, base: siteOf(ex) }
}

/** The name of this server that the request used: scheme, host and port. Throws 403 for a host that is no name of ours. */
export function siteOf(ex: Exchange): string {
  const base = baseOf(ex.snapshot.mcp.site, ex.header('host'), ex.http.port)
  if (base !== undefined) return base
  const hint = 'Operators add it to mcp.hosts, or set server.public_url.'
  throw oauthError(403, 'invalid_request', `The Host header does not name this server. ${hint}`)
}

const WINDOW_MS = 60_000

/** Attempts limited per client address. */
export type Attempt = 'register' | 'consent' | 'client'

/** Counts an attempt of the client's address, and throws 429 beyond `limit` a minute. */
export async function countAttempt({ ex, services }: OAuthContext, what: Attempt, limit: number): Promise<void> {
  checkQuota(await services.counters.take(counterOf(ex, what), limit, WINDOW_MS))
}

/** Throws 429 where the client's address has no attempt left, and counts nothing: only wrong attempts count. */
export async function checkAttempts({ ex, services }: OAuthContext, what: Attempt, limit: number): Promise<void> {
  checkQuota(await services.counters.peek(counterOf(ex, what), limit, WINDOW_MS))
}

const counterOf = ({ http: { clientAddress } }: Exchange, what: Attempt): string =>
  `oauth ${what} ${addressKey(clientAddress)}`

function checkQuota({ allowed, resetMs }: Quota): void {
  if (!allowed) throw tooOften(resetMs / 1000)
}
