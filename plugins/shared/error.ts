/** Errors of wires in the dialects of `readProviderError`. */
import {
  errors,
  type GatewayError,
  guessStatus,
  readProviderError,
  type Target,
  type Translator,
  upstreamError,
  upstreamErrorFrom,
} from '../../src/plugin.ts'

/** The error of a status of 400 or above. */
export const plainError: Translator['error'] = (status, body, target) => upstreamErrorFrom(status, body, target)

/** The error in an answer (E5); else an error that the answer lacks `what`, such as "a list of results". */
export function errorIn(answer: unknown, what: string, target: Target): GatewayError {
  const reported = readProviderError(answer)
  if (!reported) return errors.invalidAnswer(`it holds no ${what}`)
  return upstreamError(guessStatus(reported, target), reported, target)
}
