/** Reads the error bodies of all providers, and decides what each means for failover. Never throws. */

import type { Provider, Target } from '../core/translator.ts'
import { ERROR_BOUNDS, parseAnswer } from '../json/answer-bounds.ts'
import { isObject, type Json } from '../json/json.ts'
import { asAnswerError, GatewayError } from '../lib/error.ts'
import { namedWaitMs } from '../lib/named-wait.ts'
import { redactAccount, redactText } from '../secrets/redact.ts'

/** A provider's error in one form for all wires. */
export interface ProviderError {
  message: string
  code?: string | undefined
  type?: string | undefined
  param?: string | undefined
}

/** Bytes of an error body that are read. */
export const MAX_ERROR_BYTES = 64 * 1024
const MAX_MESSAGE_CHARACTERS = 5000
/** Characters of each field that are read: more than are shown, since masks shorten a message. */
const MAX_READ_CHARACTERS = 4 * MAX_MESSAGE_CHARACTERS
const str = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined

/** Reads an error body of any dialect (docs/contributing/edge-cases.md#errors E5); undefined when it holds no error. */
export function readProviderError(answer: unknown): ProviderError | undefined {
  const reported = reportedIn(answer)
  return reported && cut(reported)
}

/** Patterns read these fields, and an answer may be large. */
const cut = ({ message, code, type, param }: ProviderError): ProviderError => ({
  message: message.slice(0, MAX_READ_CHARACTERS),
  code: code?.slice(0, MAX_READ_CHARACTERS),
  type: type?.slice(0, MAX_READ_CHARACTERS),
  param: param?.slice(0, MAX_READ_CHARACTERS),
})

function reportedIn(answer: unknown): ProviderError | undefined {
  const body: unknown = Array.isArray(answer) ? answer[0] : answer
  if (!isObject(body)) return undefined
  const { error, detail, base_resp: base } = body
  if (isObject(error)) {
    return {
      message: text(error.message) ?? written(error),
      code: str(error.code),
      type: str(error.type),
      param: str(error.param),
    }
  }
  if (typeof error === 'string' && error !== '') return { message: error, code: str(body.code), type: str(body.type) }
  if (isObject(base) && typeof base.status_code === 'number' && base.status_code !== 0) {
    return { message: str(base.status_msg) ?? 'unknown error', code: String(base.status_code) }
  }
  if (isObject(detail)) {
    return { message: text(detail.error) ?? text(detail.message) ?? written(detail), code: str(detail.code) }
  }
  if (typeof detail === 'string' || Array.isArray(detail)) return { message: text(detail) ?? 'unknown error' }
  const message = text(body.message) ?? str(body.err_msg) ?? str(body.msg)
  if (message === undefined || 'choices' in body) return undefined
  return { message, code: str(body.code) ?? str(body.err_code), type: str(body.type), param: str(body.param) }
}

/** Messages come as strings, or as the lists and objects of a validator. */
function text(message: unknown): string | undefined {
  if (typeof message === 'string') return message || undefined
  return message === undefined || message === null ? undefined : written(message)
}

/** Its JSON text as far as it is read: an answer with an error in it may hold a million values. */
const written = (value: unknown): string => JSON.stringify(beginningOf(value, { left: MAX_READ_CHARACTERS }))

/** A copy of a parsed value, up to where its JSON text has used up the characters of `room`, or more. */
function beginningOf(value: unknown, room: { left: number }): unknown {
  room.left--
  if (typeof value === 'string') {
    const text = value.slice(0, Math.max(0, room.left))
    room.left -= text.length
    return text
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (let at = 0; at < value.length && room.left > 0; at++) items.push(beginningOf(value[at], room))
    return items
  }
  const members: [string, unknown][] = []
  for (const name in value) {
    if (room.left <= 0) break
    room.left -= name.length
    members.push([name, beginningOf((value as Json)[name], room)])
  }
  // Not by assignment: a member may be called __proto__.
  return Object.fromEntries(members)
}

/** The provider of an error. Its credential is never shown; its manifest may name codes of its own. */
type Origin = Pick<Target, 'credential' | 'provider'>

/** The code under which a manifest lists an error by its code, its type or a part of its message. */
function meaningOf({ code = '', type = '', message }: ProviderError, origin: Origin | undefined): string | undefined {
  const { errorCodes, errorPhrases } = origin?.provider ?? {}
  return errorCodes?.get(code) ?? errorCodes?.get(type) ?? phraseIn(message, errorPhrases)
}

/** The status that each meaning has with others: a provider may answer a spent account with any. */
const STATUS_OF: Readonly<Record<string, number>> = {
  insufficient_quota: 402,
  invalid_api_key: 401,
  rate_limit_exceeded: 429,
  context_length_exceeded: 400,
  content_filter: 400,
}

function named(reported: ProviderError, meaning: string | undefined): ProviderError {
  if (meaning === undefined) return reported
  // A field that the provider names beside an account is not at fault.
  return { ...reported, code: meaning, param: STATUS_OF[meaning] === 400 ? reported.param : undefined }
}

/** The code of the first phrase in a message; words in quotes are the caller's. */
function phraseIn(message: string, phrases: Provider['errorPhrases']): string | undefined {
  if (!phrases) return undefined
  const words = message.slice(0, MAX_READ_CHARACTERS).replace(QUOTED, '').toLowerCase()
  return phrases.find(([phrase]) => words.includes(phrase!))?.[1]
}

/** Removes from a message what repeats `secret` or looks like a secret (E13). */
export function redactMessage(message: string, secret?: string): string {
  // Cut last: of a secret that is cut in two, the first part would be shown.
  return redactText(message, secret).slice(0, MAX_MESSAGE_CHARACTERS)
}

/** Matches codes that a program reads: a name, never a sentence. */
const NAME = /^[\w.:/-]{1,64}$/
const nameIn = (name: string | undefined, secret?: string): string | undefined =>
  name !== undefined && NAME.test(name) && redactMessage(name, secret) === name ? name : undefined
const MAX_PARAM_CHARACTERS = 200

const CREDENTIAL =
  /api[ _-]?key.{0,20}(?:invalid|not valid|incorrect|expired|missing)|invalid.{0,10}api[ _-]?key|API_KEY_INVALID|unauthorized|authentication/i
const FUNDS =
  /credit balance|insufficient[ _](?:quota|balance|funds|credit)|billing|exceeded_current_quota|spend[ _]limit|arrear/i
const QUOTA = /insufficient_quota|contract_spend_limit|enforced_spend_limit|exceeded_current_quota|quota_exceeded/i
const CONTEXT =
  /context_length_exceeded|exceed_context_size|prompt is too long|input is too long|maximum context length|context[ _]window/i
const CONTENT =
  /content_filter|content_policy|moderation_blocked|data_inspection_failed|ResponsibleAI|PROHIBITED_CONTENT/i
/** Statuses by the text of an in-band error; the first match counts. */
const STATUSES: [RegExp, number][] = [
  [/insufficient_quota|rate.?limit|too many requests|throttl/i, 429],
  [/authenti|unauthorized|api.?key/i, 401],
  [/permission|forbidden/i, 403],
  [/not.?found/i, 404],
  [/context|invalid|bad.?request/i, 400],
  [/overload|unavailable|capacity/i, 503],
  [/timeout|timed out|deadline/i, 504],
]

function reading({ type = '', code = '', message }: ProviderError) {
  const words = `${type} ${code} ${message}`
  return { words, says: (pattern: RegExp) => pattern.test(words) || pattern.test(code) }
}

/** Whether a 400 is about our account: not one that names a field, and not for words that the caller chose, in quotes. */
function blamesAccount({ message, ...reported }: ProviderError): boolean {
  if (reported.param !== undefined) return false
  const { says } = reading({ ...reported, message: message.replace(QUOTED, '') })
  return says(FUNDS) || says(CREDENTIAL)
}
const QUOTED = /(?<!\w)(['"`])[^'"`\n]*\1(?!\w)/g

/** The status that an in-band error would have had (docs/contributing/wire-sources.md#openai). */
export function guessStatus(given: ProviderError, origin?: Origin): number {
  const reported = cut(named(given, meaningOf(given, origin)))
  const numeric = Number(reported.code)
  if (numeric >= 400 && numeric < 600) return numeric
  const { words, says } = reading(reported)
  if (says(CONTEXT) || says(CONTENT)) return 400
  if (FUNDS.test(words) && !says(QUOTA)) return 402
  return STATUSES.find(([pattern]) => pattern.test(words))?.[1] ?? 500
}

/** Whether the caller's organization owns the credential or the provider: its texts are then about its own account. */
const isCallersAccount = (origin: Origin | undefined): boolean =>
  origin?.credential?.source === 'byok' || origin?.provider.owner !== undefined

/** Whether the text is about the operator's account. A 401 without an origin is a failure to sign, which names a credential. */
const isOperatorsAccount = (origin: Origin | undefined, status: number): boolean =>
  origin ? origin.credential?.source === 'platform' && !isCallersAccount(origin) : status === 401

/** Whether an error of this code is about the credential or its account, so that another credential may be accepted. */
export const blamesCredential = (code: string | null): boolean =>
  code === 'upstream_credential' || code === 'upstream_quota'

/** Clients read these in place of a provider's words about the operator's account. */
const SHOWN: Readonly<Record<string, string>> = {
  upstream_credential: "The provider refused the gateway's credential or account.",
  upstream_quota: "The gateway's quota at the provider is used up.",
  upstream_rate_limited: 'The provider limits the rate of requests. Please retry later.',
  upstream_overloaded: 'The provider is overloaded. Please retry.',
  not_found: 'The provider does not know the model or resource of the request.',
  timeout: 'The provider did not answer in time.',
}

/** Splits a provider's text into a `message` for clients and a `detail` that is not shown. */
function audiences(message: string, status: number, code: string, origin: Origin | undefined) {
  if (!isOperatorsAccount(origin, status)) return { message }
  return { message: SHOWN[code] ?? 'The provider failed.', detail: message }
}

/**
 * Maps a provider's refusal to our error. What blames the caller keeps its status and message and stops failover; all
 * else may be answered by another candidate (docs/contributing/edge-cases.md#errors).
 */
export function upstreamError(
  status: number,
  given: ProviderError,
  origin?: Origin,
  retryAfterMs?: number,
): GatewayError {
  const meaning = meaningOf(given, origin)
  const reported = cut(named(given, meaning))
  const secret = origin?.credential?.secret
  const message = redactMessage(reported.message, secret)
  const { says } = reading(reported)
  const provider = (as: number, code: string) =>
    new GatewayError({
      status: as,
      type: 'upstream_error',
      code,
      ...audiences(message, status, code, origin),
      failover: true,
      upstreamStatus: status,
      retryAfterMs: retryAfterMs ?? namedWaitMs(message),
    })
  const shown = (text: string) => (isCallersAccount(origin) ? text : redactAccount(text))
  const caller = (as: number, code: string | null) =>
    new GatewayError({
      status: as,
      type: 'invalid_request_error',
      code,
      message: shown(message),
      param:
        reported.param === undefined
          ? undefined
          : shown(redactMessage(reported.param, secret)).slice(0, MAX_PARAM_CHARACTERS),
      upstreamStatus: status,
    })

  switch (status === 429 && meaning === 'insufficient_quota' ? status : (STATUS_OF[meaning ?? ''] ?? status)) {
    case 400:
    case 422:
      if (says(CONTEXT)) return caller(400, 'context_length_exceeded')
      if (says(CONTENT)) return caller(400, 'content_filter')
      if (blamesAccount(reported)) return provider(502, 'upstream_credential')
      return caller(400, nameIn(reported.code, secret) ?? null)
    case 413:
      return caller(413, 'request_too_large')
    case 415:
      return caller(415, 'unsupported_media_type')
    case 401:
    case 402:
    case 403:
      return provider(502, 'upstream_credential')
    case 404:
      return provider(404, 'not_found')
    case 429:
      return provider(503, says(QUOTA) ? 'upstream_quota' : 'upstream_rate_limited')
    case 408:
    case 504:
    case 524:
      return new GatewayError({
        status: 504,
        type: 'timeout_error',
        code: 'timeout',
        ...audiences(message, status, 'timeout', origin),
        failover: true,
        upstreamStatus: status,
      })
    case 503:
    case 529:
      return provider(503, 'upstream_overloaded')
    default:
      return provider(502, 'upstream_error')
  }
}

/**
 * As `JSON.parse`, for error bodies. Throws a SyntaxError, or a GatewayError for one that nests too deep or holds more
 * than 2,000 values.
 */
export const parseErrorBody = (body: string): unknown => parseAnswer(body, ERROR_BOUNDS)

/**
 * Parses a body and reads it as an error. Text that is not JSON is kept when it is short and not markup; of JSON beyond
 * the bounds the text itself is the message.
 */
export function upstreamErrorFrom(status: number, body: string, origin?: Origin): GatewayError {
  let reported: ProviderError | undefined
  try {
    reported = readProviderError(parseErrorBody(body))
  } catch (thrown) {
    const plain = body.trim()
    const isKept =
      thrown instanceof GatewayError ? /^\[?\s*\{/.test(plain) : plain.length < 500 && !plain.startsWith('<')
    if (plain && isKept) reported = { message: plain }
  }
  return upstreamError(status, reported ?? { message: `the provider answered with status ${status}` }, origin)
}

/**
 * A provider's error as its wire reads it, of the first 64 KiB of its body. What its wire cannot read is an invalid answer
 * of that status.
 */
export function upstreamErrorOf(target: Target, status: number, body: Buffer): GatewayError {
  try {
    return target.translator.error(status, body.toString('utf8', 0, MAX_ERROR_BYTES), target)
  } catch (thrown) {
    return asAnswerError(thrown, status)
  }
}

/**
 * The `error` of a wire whose error bodies hold more than `readProviderError` reads: `errorOf` takes the parsed body and
 * returns undefined when it holds no error.
 */
export const errorReader =
  (errorOf: (body: unknown, target: Target, status: number) => GatewayError | undefined) =>
  (status: number, body: string, target: Target): GatewayError => {
    const asText = () => upstreamErrorFrom(status, body, target)
    let parsed: unknown
    try {
      parsed = parseErrorBody(body)
    } catch {
      return asText()
    }
    return errorOf(parsed, target, status) ?? asText()
  }
