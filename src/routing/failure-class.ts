/** Classifies a failed attempt by the circuit that it counts against (docs/contract.md#circuits-and-retries). */
import type { GatewayError } from '../lib/error.ts'
import { blamesCredential } from '../wire/upstream-error.ts'

/**
 * - `provider`: broken, slow or overloaded (connection, deadline, 408, 409, 5xx, invalid answers)
 * - `throttle`: the credential exceeds its rate (429)
 * - `credential`: the credential is invalid or spent (401, 402, 403, quota, and 400s that mean one of these)
 * - `none`: the request or the gateway is wrong; 404 too, since a request can name a file that does not exist
 */
export type FailureClass = 'provider' | 'throttle' | 'credential' | 'none'

/** The class of a failed attempt; `none` for errors that came from no attempt or that another provider would repeat. */
export function classifyFailure({ upstreamStatus, code, failover }: GatewayError): FailureClass {
  if (upstreamStatus === undefined || !failover) return 'none'
  if (blamesCredential(code)) return 'credential'
  if (upstreamStatus === 404) return 'none'
  return upstreamStatus === 429 || code === 'upstream_rate_limited' ? 'throttle' : 'provider'
}
