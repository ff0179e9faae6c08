/** Errors of the Responses wire: of a status, of an event in either shape, of a failed answer. */
import {
  type GatewayError,
  guessStatus,
  type ProviderError,
  readProviderError,
  type Target,
  upstreamError,
  upstreamErrorFrom,
} from '../../src/plugin.ts'

/** Error codes that blame the request. */
const CALLER = /^(?:invalid_|image_|unsupported_image|empty_image|failed_to_download_image|bio_policy)/

/** Reasoning encrypted for another organization or deployment of the provider. */
const FOREIGN_REASONING = 'invalid_encrypted_content'

/** The error that an event or a body holds, in any dialect; undefined when it holds none. */
export function errorOf(body: unknown, target: Target): GatewayError | undefined {
  const reported = readProviderError(body)
  return reported && upstreamError(statusOf(reported, target), reported, target)
}

/** The error of an answer with status 400 or above. */
export function error(status: number, body: string, target: Target): GatewayError {
  const error = upstreamErrorFrom(status, body, target)
  // Another provider gets the conversation without that reasoning, so it may succeed.
  return error.code === FOREIGN_REASONING ? error.with({ failover: true }) : error
}

/** Status of an error inside an answer; its code is more precise than its message. */
function statusOf(reported: ProviderError, target: Target): number {
  if (reported.code === 'server_error') return 500
  return CALLER.test(reported.code ?? '') ? 400 : guessStatus(reported, target)
}
