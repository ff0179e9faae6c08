/** What a failed attempt counts against (docs/contract.md#circuits-and-retries). */
import type { GatewayError } from '../core/error.ts'

/**
 * - `provider`: broken, slow or overloaded (connection, deadline, 408, 409, 5xx, answers that are none)
 * - `throttle`: the credential is asked too often (429)
 * - `credential`: the credential is no good (401, 402, 403, spent quota, and 400s that mean one of these)
 * - `none`: the caller is at fault, or we are; 404 with them, since a caller can name a file that is not there
 */
export type FailureClass = 'provider' | 'throttle' | 'credential' | 'none'

export function classifyFailure({ upstreamStatus, code, failover }: GatewayError): FailureClass {
  if (upstreamStatus === undefined || !failover || upstreamStatus === 404) return 'none'
  if (code === 'upstream_credential' || code === 'upstream_quota') return 'credential'
  return upstreamStatus === 429 ? 'throttle' : 'provider'
}
