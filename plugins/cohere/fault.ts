/** Errors of Cohere's wire: `{"message": "…", "id": "…"}`. */
import { type GatewayError, readFault, type Target, upstreamError, upstreamErrorFrom } from '../../src/plugin.ts'

const INVALID_TOKEN = 498

/** A refused request as our error. */
export function error(status: number, body: string, target: Target): GatewayError {
  const secret = target.credential?.secret
  if (status === INVALID_TOKEN) return upstreamErrorFrom(401, body, secret).with({ upstreamStatus: status })
  if (status !== 429) return upstreamErrorFrom(status, body, secret)
  // E6: a trial key's calls of a month do not come back with time.
  const fault = parsedFault(body)
  if (!fault || !/month/i.test(fault.message)) return upstreamErrorFrom(status, body, secret)
  return upstreamError(status, { ...fault, code: 'quota_exceeded' }, secret)
}

function parsedFault(body: string) {
  try {
    return readFault(JSON.parse(body))
  } catch {
    return undefined
  }
}
