/** Answers of wires whose whole answer is one JSON object. */
import { errors, type GatewayError, guessStatus, readFault, type Target, upstreamError } from '../../src/plugin.ts'

/** The error in place of an answer (E5); of one that holds none, that it lacks `what`, such as "a list of results". */
export function errorIn(answer: unknown, what: string, target: Target): GatewayError {
  const fault = readFault(answer)
  if (!fault) return errors.invalidAnswer(`it holds no ${what}`)
  return upstreamError(guessStatus(fault), fault, target.credential?.secret)
}
