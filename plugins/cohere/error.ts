/** Errors of Cohere's wire: `{"message": "…", "id": "…"}`. */
import {
  type GatewayError,
  parseErrorBody,
  readProviderError,
  type Target,
  upstreamError,
  upstreamErrorFrom,
} from '../../src/plugin.ts'

const INVALID_TOKEN = 498

/** An error answer as a GatewayError. */
export function error(status: number, body: string, target: Target): GatewayError {
  if (status === INVALID_TOKEN) return upstreamErrorFrom(401, body, target).with({ upstreamStatus: status })
  if (status !== 429) return upstreamErrorFrom(status, body, target)
  // E6: waiting does not restore a trial key's monthly calls.
  const reported = parsedProviderError(body)
  if (!reported || !/month/i.test(reported.message)) return upstreamErrorFrom(status, body, target)
  return upstreamError(status, { ...reported, code: 'quota_exceeded' }, target)
}

function parsedProviderError(body: string) {
  try {
    return readProviderError(parseErrorBody(body))
  } catch {
    return undefined
  }
}
