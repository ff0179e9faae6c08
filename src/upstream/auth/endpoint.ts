/** Fetches credentials: tokens of an OAuth server, keys from instance metadata. */
import { Agents } from '../../egress/agents.ts'
import { ProxyError } from '../../egress/tunnel.ts'
import { ERROR_BOUNDS, parseAnswer } from '../../json/answer-bounds.ts'
import type { Egress } from '../../lib/egress.ts'
import { errors, type GatewayError } from '../../lib/error.ts'
import { Deadline } from '../../lib/timer.ts'
import { redactMessage, upstreamError } from '../../wire/upstream-error.ts'
import type { Grant } from './access-token.ts'

const MAX_ANSWER_BYTES = 64 * 1024

/** Credentials last for minutes or hours: no socket is kept. */
const agents = new Agents(MAX_ANSWER_BYTES)

/** One request of `callEndpoint`; a GET without headers and body by default. */
export interface EndpointRequest {
  readonly method?: 'GET' | 'PUT' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly deadlineMs: number
  readonly egress?: Egress | undefined
}

/** An answer of any status; its body is at most 64 KiB. */
export interface EndpointAnswer {
  readonly status: number
  readonly text: string
}

/** Rejects with a GatewayError that may fail over. */
export async function callEndpoint(
  url: string,
  { method = 'GET', headers, body, deadlineMs, egress }: EndpointRequest,
): Promise<EndpointAnswer> {
  const deadline = new Deadline(deadlineMs)
  try {
    const { origin, pathname, search } = new URL(url)
    const answer = await agents.of(egress).request({
      origin,
      path: pathname + search,
      method,
      headers: { accept: 'application/json', ...headers },
      ...(body !== undefined && { body }),
      signal: deadline.signal,
    })
    return { status: answer.statusCode, text: await answer.body.text() }
  } catch (thrown) {
    const { name, code } = thrown as { name?: unknown; code?: unknown }
    if (name === 'TimeoutError') throw errors.upstreamTimeout('access token')
    const coded = typeof code === 'string' && !code.startsWith('UND_ERR') ? `: ${code}` : ''
    const why = thrown instanceof ProxyError ? `: ${thrown.message}` : coded
    throw errors.unreachable(`its token endpoint cannot be reached${why}`, thrown)
  } finally {
    deadline.end()
  }
}

/** The request of an OAuth token endpoint: a POST of the fields as a URL-encoded form (RFC 6749). */
export const formRequest = (
  fields: Readonly<Record<string, string>>,
): Pick<EndpointRequest, 'method' | 'headers' | 'body'> => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})

/** The token of an OAuth answer. Throws a GatewayError that does not contain `secret`. */
export function grantIn({ status, text }: EndpointAnswer, secret: string): Grant {
  const answer = fieldsOf(text)
  if (status >= 400) throw tokenError(status, answer, secret)
  const { access_token: token, expires_in: seconds } = answer
  // It becomes a header.
  if (status !== 200 || typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw errors.invalidAnswer('its token endpoint gave no access token', status)
  }
  return { token, seconds: typeof seconds === 'number' && seconds > 0 ? seconds : 0 }
}

/** The fields of a JSON object; none of what is no such, or holds more than a credential does. */
export function fieldsOf(text: string): Record<string, unknown> {
  try {
    return Object(parseAnswer(text, ERROR_BOUNDS)) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Converts an error of a token endpoint (RFC 6749 section 5.2). The credential is at fault, not the caller. */
function tokenError(status: number, answer: Record<string, unknown>, secret: string): GatewayError {
  const description = [answer.error, answer.error_description].filter(part => typeof part === 'string').join(': ')
  // An assertion is a credential for as long as it lasts, and so is a part of it.
  const clean = redactMessage(description, secret)
    .replace(/\S{60,}/g, '***')
    .slice(0, 300)
  const passing = status >= 500 || status === 429 || status === 408
  return upstreamError(passing ? status : 401, {
    message: `The token endpoint of the provider answered with status ${status}${clean && `: ${clean}`}`,
  })
}
