/** Refusals of the authorization server (RFC 6749 5.2, 4.1.2.1; RFC 7591 3.2.2; RFC 8707). */
import { GatewayError } from '../lib/error.ts'

/** The error codes of the RFCs. */
export type OAuthCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'access_denied'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'temporarily_unavailable'
  | 'server_error'

/** Errors of `oauthError` have this type; `errorBody` gives all others a code by their status. */
const TYPE = 'oauth_error'

/** A refusal with a code of the protocol. */
export const oauthError = (
  status: number,
  code: OAuthCode,
  message: string,
  headers: Record<string, string> = {},
): GatewayError => new GatewayError({ status, type: TYPE, code, message, headers })

const BASIC = { 'www-authenticate': 'Basic realm="oauth", charset="UTF-8"' }
/** One text for every cause. */
export const invalidClient = () =>
  oauthError(401, 'invalid_client', 'The client is unknown, or its secret is wrong.', BASIC)
/** One text for every cause. */
export const invalidGrant = () =>
  oauthError(400, 'invalid_grant', 'The code or token is unknown, used, expired, revoked, or of another client.')
/** For a scope that is unknown, or beyond what was granted. */
export const invalidScope = () =>
  oauthError(400, 'invalid_scope', 'The scope is unknown, or exceeds what may be granted.')
/** For a `resource` that is not this server. */
export const invalidTarget = (base: string) =>
  oauthError(400, 'invalid_target', `The resource must be ${base}/mcp, or absent.`)
/** Builds the error for an address without attempts left. */
export const tooOften = (seconds: number) =>
  oauthError(429, 'temporarily_unavailable', 'Too many attempts from this address. Wait, and try again.', {
    'retry-after': String(Math.max(1, Math.ceil(seconds))),
  })

/** In the characters that RFC 6749 allows: printable ASCII without quotes and backslashes. */
export const descriptionOf = (message: string): string => message.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?')

/** `{error, error_description}` of any error. */
export const errorBody = ({ status, type, code, message }: GatewayError): object => ({
  error: type === TYPE ? code : codeOf(status),
  error_description: descriptionOf(message),
})

function codeOf(status: number): OAuthCode {
  if (status === 401) return 'invalid_client'
  if (status === 429 || status === 503 || status === 529) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}
