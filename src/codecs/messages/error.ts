/** The error object of the Messages endpoint, and its error types (docs/contract.md#messages). */
import type { GatewayError } from '../../lib/error.ts'
import { recognizable } from '../overflow.ts'

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

const messageOf = (error: GatewayError): string => recognizable(error, 'prompt is too long')
const typeOf = (status: number): string => TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')

/** The body of a refusal. */
export const messagesError = (error: GatewayError) => ({
  type: 'error',
  error: { type: typeOf(error.status), message: messageOf(error), ...(error.details && { details: error.details }) },
})

/** Within a stream there is no status: these provider error types tell a client when to retry. */
const IN_STREAM: Readonly<Record<string, string>> = {
  upstream_overloaded: 'overloaded_error',
  upstream_rate_limited: 'rate_limit_error',
}

/** The data of an `error` event. */
export const streamError = (error: GatewayError) => ({
  type: 'error',
  error: { type: IN_STREAM[error.code ?? ''] ?? typeOf(error.status), message: messageOf(error) },
})
