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

/** Codes of a failed answer that blame what was sent to it. */
const CALLER = /^(?:invalid_|image_|unsupported_image|empty_image|failed_to_download_image|bio_policy)/

/** Reasoning that another organization or deployment of the provider encrypted. */
const FOREIGN_REASONING = 'invalid_encrypted_content'

/** The error that an event or a body holds, in any dialect; undefined when it holds none. */
export function errorOf(body: unknown, target: Target): GatewayError | undefined {
  const reported = readProviderError(body)
  return reported && upstreamError(statusOf(reported), reported, target.credential?.secret)
}

/** The error of an answer with status 400 or above. */
export function error(status: number, body: string, target: Target): GatewayError {
  const error = upstreamErrorFrom(status, body, target.credential?.secret)
  // Another provider gets the conversation without that reasoning, so it may well answer.
  return error.code === FOREIGN_REASONING ? error.with({ failover: true }) : error
}

/** The status that the error would have had; its code tells more than its words. */
function statusOf(reported: ProviderError): number {
  if (reported.code === 'server_error') return 500
  return CALLER.test(reported.code ?? '') ? 400 : guessStatus(reported)
}
