/** Errors of the wire, and what it blocked for its content (docs/contract.md#image-wires). */
import {
  errorReader,
  type GatewayError,
  guessStatus,
  isObject,
  type Json,
  listIn,
  objectIn,
  readProviderError,
  type Target,
  textIn,
  upstreamError,
} from '../../src/plugin.ts'

/** HTTP status of each status word, for errors inside an answer. */
const STATUS: ReadonlyMap<string | undefined, number> = new Map([
  ['INVALID_ARGUMENT', 400],
  ['FAILED_PRECONDITION', 400],
  ['OUT_OF_RANGE', 400],
  ['UNAUTHENTICATED', 401],
  ['PERMISSION_DENIED', 403],
  ['NOT_FOUND', 404],
  ['RESOURCE_EXHAUSTED', 429],
  ['CANCELLED', 499],
  ['INTERNAL', 500],
  ['UNAVAILABLE', 503],
  ['DEADLINE_EXCEEDED', 504],
])

/** Maximum details read of an error, and violations read of each detail. */
const MAX_DETAILS = 32
const TOO_LONG = /input token count.{0,40}exceeds the maximum/i

/**
 * The error in a parsed body or chunk, by itself or in a list of one; undefined when there is none. Without `status` it
 * is an error inside an answer, which contains its own status.
 */
export function errorOf(answer: unknown, target: Target, status?: number): GatewayError | undefined {
  const body: unknown = Array.isArray(answer) ? answer[0] : answer
  const reported = readProviderError(body)
  if (!reported) return undefined
  const error = objectIn(objectIn(body).error)
  const word = textIn(error.status)
  const details = listIn(error.details).slice(0, MAX_DETAILS).filter(isObject)
  const isSpent = details.some(({ violations }) => listIn(violations).slice(0, MAX_DETAILS).some(isDaily))
  return upstreamError(
    meaning(status ?? statusOf(error.code) ?? STATUS.get(word) ?? guessStatus(reported, target), word, details),
    { message: reported.message, type: word ?? reported.type, code: codeOf(reported.message, isSpent) },
    target,
    isSpent ? undefined : retryDelayMs(details),
  )
}

/** The error of a status of 400 or above. */
export const error = errorReader(errorOf)

const statusOf = (code: unknown): number | undefined =>
  typeof code === 'number' && code >= 400 && code < 600 ? code : undefined

/** An invalid key, or an unsupported region or account: this wire reports them as errors of the request (E7). */
function meaning(status: number, word: string | undefined, details: readonly Json[]): number {
  if (status !== 400) return status
  if (details.some(({ reason }) => reason === 'API_KEY_INVALID')) return 401
  return word === 'FAILED_PRECONDITION' ? 403 : status
}

/** Codes for programs; the wire has numbers only. */
function codeOf(message: string, isSpent: boolean): string | undefined {
  if (isSpent) return 'quota_exceeded'
  return TOO_LONG.test(message) ? 'context_length_exceeded' : undefined
}

/** Waiting does not restore a daily quota (E6). */
const isDaily = (violation: unknown): boolean => isObject(violation) && /PerDay/i.test(textIn(violation.quotaId) ?? '')

/** `"34.4s"` of a RetryInfo, in milliseconds (E8). */
function retryDelayMs(details: readonly Json[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = Number(/^(\d+(?:\.\d+)?)s$/.exec(textIn(retryDelay) ?? '')?.[1] ?? Number.NaN)
    if (seconds > 0) return Math.ceil(seconds * 1000)
  }
  return undefined
}

/** Other reasons do not concern the content. */
const FILTERED = /SAFETY|PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII|MODEL_ARMOR|JAILBREAK/

/** Whether a finish reason says that content was blocked. */
export const isFiltered = (reason: string): boolean => FILTERED.test(reason)

/** Why the prompt was blocked; undefined when it was not. */
export function blockedBy(feedback: unknown): string | undefined {
  if (!isObject(feedback) || feedback.blockReason === undefined) return undefined
  return textIn(feedback.blockReasonMessage) ?? `The provider refused the prompt: ${textIn(feedback.blockReason)}.`
}

/** Why a candidate was blocked; undefined when it was not. */
export function filteredBy({ finishReason, finishMessage }: Json): string | undefined {
  const reason = textIn(finishReason) ?? ''
  return isFiltered(reason) ? (textIn(finishMessage) ?? `The provider left the answer out: ${reason}.`) : undefined
}
