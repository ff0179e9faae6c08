/** Errors of wires in the dialects of `readProviderError`, and of answers that a model has spoilt. */
import {
  billed,
  errorReader,
  errors,
  type GatewayError,
  guessStatus,
  readProviderError,
  type Target,
  type Usage,
  upstreamError,
} from '../../src/plugin.ts'
import { findingsError } from './findings.ts'

/** The error of a status of 400 or above. */
export const plainError = errorReader(findingsError)

/** The error in an answer (E5); else an error that the answer lacks `what`, such as "a list of results". */
export function errorIn(answer: unknown, what: string, target: Target): GatewayError {
  const reported = readProviderError(answer)
  if (!reported) return errors.invalidAnswer(`it holds no ${what}`)
  return upstreamError(guessStatus(reported, target), reported, target)
}

/** Tokens that are given up for nothing: of an answer, and of it with its prompt, whose tokens cost a fraction of that. */
const MAX_FREE = { written: 4096, all: 32_768 }

/**
 * The failure of an answer that ends by mistake, such as with a call that cannot be read. Another provider may do better,
 * and the operator pays for this one; but not where it has cost much by the `usage` that is reported, which the caller may
 * have caused to no other end.
 */
export const malformed = (error: GatewayError, { prompt = 0, completion = 0 }: Usage = {}): GatewayError =>
  completion > MAX_FREE.written || prompt + completion > MAX_FREE.all ? billed(error) : error
