/** Classifies failed attempts, and makes the error of a request that no target answered (docs/contract.md#failed-requests). */
import type { Attempt } from '../core/attempt.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { blamesCredential } from '../wire/upstream-error.ts'

/**
 * The circuit that a failed attempt counts against (docs/contract.md#circuits-and-retries):
 *
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

/** How an attempt is shown in `metadata.routing`. */
export function errorType(error: GatewayError): Attempt['errorType'] {
  if (error.status === 504) return 'timeout'
  if (error.upstreamStatus === 429) return 'rate_limited'
  return error.upstreamStatus === 0 ? 'network_error' : 'upstream_error'
}

/** Its wire cannot carry the request, or its mapping so large a file: the request was not sent. */
export const isBeyondWire = ({ status, upstreamStatus, failover }: GatewayError): boolean =>
  failover && (status === 400 || status === 413) && upstreamStatus === undefined

/** Whether the attempt was not sent because the provider's concurrency limit was reached. */
export const isFull = ({ code, upstreamStatus }: GatewayError): boolean =>
  code === 'overloaded' && upstreamStatus === undefined

/** Without a wait from any provider: longer than the second in which clients spend their retries, and soon enough. */
const USUAL_WAIT_MS = 5000

/** The shortest wait that a provider named. */
function waitOf(failures: readonly GatewayError[]): number {
  const waits = failures.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  return waits.length > 0 ? Math.min(...waits) : USUAL_WAIT_MS
}

/**
 * The one error for attempts that all may fail over: what they share if they share it, else `all_providers_failed`.
 * `Retry-After` is `longestMs` at most.
 */
export function exhausted(failures: readonly GatewayError[], longestMs: number): GatewayError {
  // A wire that cannot carry the request sent nothing: its refusal counts only when no request was sent.
  const sent = failures.filter(error => !isBeyondWire(error))
  const last = sent.at(-1)
  if (!last) return failures[0]!
  const all = (test: (error: GatewayError) => boolean) => sent.every(test)
  if (all(error => error.upstreamStatus === 429 || error.code === 'upstream_rate_limited')) {
    return errors.upstreamRateLimited(Math.min(waitOf(sent), longestMs) / 1000)
  }
  if (all(error => error.status === 504)) return last
  if (all(error => error.status === 529 && error.upstreamStatus === undefined)) return last
  if (all(error => error.code === 'fetch_failed')) return last
  if (all(error => error.status === 404)) return last
  if (all(error => error.status === 402 && error.upstreamStatus === undefined)) return last
  const failed = errors.allProvidersFailed(last.message)
  return all(({ code }) => blamesCredential(code)) ? failed.with(errors.credentialsRefused(failed.message)) : failed
}

/** Builds the error of a request whose retry budget is spent before all targets were tried. */
export function outOfBudget(failures: readonly GatewayError[], longestMs: number): GatewayError {
  const error = exhausted(failures, longestMs)
  // Others may serve what these providers do not have.
  const failed = error.status >= 500 ? error : errors.allProvidersFailed(error.message)
  return failed.with(errors.retryBudgetSpent(failures.at(-1)!.message))
}
