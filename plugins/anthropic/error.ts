/** Errors of the Messages wire. */
import { type GatewayError, guessStatus, readProviderError, type Target, upstreamError } from '../../src/plugin.ts'

/** HTTP status of each error type, for errors inside an answer. */
const STATUS: ReadonlyMap<string | undefined, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

/**
 * The error in a parsed body or event, in any dialect; undefined when there is none. Without `status` it is an error
 * inside an answer, and its type determines the status.
 */
export function errorOf(body: unknown, target: Target, status?: number): GatewayError | undefined {
  const reported = readProviderError(body)
  if (!reported) return undefined
  const code = detailCode(body) ?? reported.code
  return upstreamError(
    status ?? STATUS.get(reported.type) ?? guessStatus(reported, target),
    { ...reported, code },
    target,
  )
}

/** Distinguishes a spent quota from a temporary rate limit; the wire reports it beside the message. */
function detailCode(body: unknown): string | undefined {
  const code = (body as { error?: { details?: { error_code?: unknown } | null } | null } | null)?.error?.details
    ?.error_code
  return typeof code === 'string' ? code : undefined
}
