/** Errors of the Converse wire. */
import {
  errorReader,
  type GatewayError,
  guessStatus,
  objectIn,
  readProviderError,
  type Target,
  textIn,
  upstreamError,
} from '../../src/plugin.ts'

/** HTTP status of each error type, for errors inside an answer. Names without "Exception". */
const STATUS: ReadonlyMap<string, number> = new Map([
  ['validation', 400],
  ['servicequotaexceeded', 429],
  ['accessdenied', 403],
  ['unrecognizedclient', 403],
  ['invalidsignature', 403],
  ['expiredtoken', 403],
  ['resourcenotfound', 404],
  ['unknownoperation', 404],
  ['modeltimeout', 408],
  ['conflict', 409],
  ['modelerror', 424],
  ['modelstreamerror', 424],
  ['throttling', 429],
  ['modelnotready', 429],
  ['internalserver', 500],
  ['serviceunavailable', 503],
])

const QUOTA = /service quota|quota exceeded|too many tokens per day/i
const TOO_LONG = /input tokens? (?:count )?exceed|number of input tokens|too many input tokens/i
const FILTERED = /blocked by (?:our )?content filter/i
/**
 * The actual status of a 400 by its message, since its type is in a header that is not available here. None of these is
 * the caller's fault: a quota, a credential, or a model that the account cannot access under this name.
 */
const MEANINGS: readonly [RegExp, number][] = [
  [QUOTA, 429],
  [/security token|request signature|signature (?:expired|does not match)/i, 403],
  [/model identifier is invalid|on-demand throughput|doesn.t support the model|end of its life/i, 404],
]

/**
 * The error in a parsed body or event; undefined when there is none. `status` is that of the answer; inside an answer
 * it is unset, and the exception's type, `named` or in the body, determines it.
 */
export function errorOf(
  body: unknown,
  target: Target,
  { status, named }: { status?: number; named?: string } = {},
): GatewayError | undefined {
  const answer = objectIn(body)
  const { message, code: reportedCode } = readProviderError(body) ?? {}
  const text = message ?? readProviderError({ message: textIn(answer.Message) })?.message
  const inner = objectIn(answer.Output).__type
  const type = typeOf(answer.__type ?? inner ?? named ?? reportedCode)
  if (text === undefined && type === undefined && named === undefined) return undefined
  const reported = { message: shown(text ?? `the provider reported ${type ?? 'an error'}`), type }
  let as = status ?? 400
  if (as === 400) as = STATUS.get(type ?? '') ?? status ?? guessStatus(reported, target)
  if (as === 400) as = MEANINGS.find(([pattern]) => pattern.test(reported.message))?.[1] ?? 400
  const isQuota = as === 429 && (type === 'servicequotaexceeded' || QUOTA.test(reported.message))
  const code = isQuota ? 'quota_exceeded' : as === 400 ? callerCode(reported.message) : undefined
  return upstreamError(as, { ...reported, code }, target)
}

/** The error of a status of 400 or above. */
export const error = errorReader((body, target, status) => errorOf(body, target, { status }))

/** The error code for a caller's mistake that the wire describes in its own terms (E14, E15). */
const callerCode = (message: string): string | undefined =>
  TOO_LONG.test(message) ? 'context_length_exceeded' : FILTERED.test(message) ? 'content_filter' : undefined

const SIGNED = 'The Canonical String for this request'

/** Removes the operator's account, and the signed headers that follow a wrong signature. */
function shown(message: string): string {
  const signed = message.indexOf(SIGNED)
  const plain = signed < 0 ? message : message.slice(0, signed).trimEnd()
  return plain.replace(/\barn:aws[\w-]*:[^\s"',]+/g, 'arn:***')
}

/** `com.amazon.coral.service#ThrottlingException:http://…` → `throttling`. */
function typeOf(name: unknown): string | undefined {
  if (typeof name !== 'string') return undefined
  const bare = name
    .replace(/^.*#/, '')
    .replace(/:.*$/s, '')
    .replace(/Exception$/i, '')
  return bare.toLowerCase() || undefined
}
