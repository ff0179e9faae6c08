/** Errors in Google's form: `google.rpc.Status` (docs/contributing/wire-sources.md#gemini). */
import type { GatewayError } from '../../lib/error.ts'
import { recognizable } from '../overflow.ts'

const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'RESOURCE_EXHAUSTED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
}
const statusOf = (status: number): string => STATUSES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL')
const TYPE = 'type.googleapis.com/google.rpc.'

/** `details` for programs: the error code, the invalid field, and the retry delay. */
export function geminiError(error: GatewayError): object {
  const { status, code, param, headers } = error
  const message = recognizable(error, 'input token count exceeds the maximum number of tokens allowed')
  const details: object[] = []
  if (code !== null) details.push({ '@type': `${TYPE}ErrorInfo`, reason: code, domain: 'model-gateway' })
  if (param !== null && status === 400) {
    details.push({ '@type': `${TYPE}BadRequest`, fieldViolations: [{ field: param, description: message }] })
  }
  const delay = headers['retry-after']
  if (delay !== undefined) details.push({ '@type': `${TYPE}RetryInfo`, retryDelay: `${delay}s` })
  return { error: { code: status, message, status: statusOf(status), ...(details.length > 0 && { details }) } }
}
