/** Errors as the AI SDK reads them: `error.type` chooses the class, the status whether to retry. */

import type { Headers } from '../../core/http-request.ts'
import { errors, type GatewayError } from '../../lib/error.ts'

/** The header in which the protocol names the model. */
export const MODEL_HEADER = 'ai-language-model-id'

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'forbidden',
  404: 'not_found',
  424: 'failed_dependency',
  429: 'rate_limit_exceeded',
}

const MISSING = new Set<string | null>(['model_not_found', 'model_not_available'])
const isModelMissing = ({ status, code }: GatewayError) => status === 404 && MISSING.has(code)

/** The `error.type` from which the SDK chooses its class. */
function typeOf(error: GatewayError): string {
  if (isModelMissing(error)) return 'model_not_found'
  return TYPES[error.status] ?? (error.status >= 500 ? 'internal_server_error' : 'invalid_request_error')
}

/** The id of an answer in this protocol. */
export const generationIdOf = (logId: string): string => `gen_${logId}`

/** The body of a refusal; `generationId` is null where no log id is given. */
export function aiSdkError(error: GatewayError, headers: Headers = {}, logId?: string): object {
  const { message, code } = error
  const param = isModelMissing(error) ? { modelId: headers[MODEL_HEADER] } : error.param
  const generationId = logId === undefined ? null : generationIdOf(logId)
  return { error: { message, type: typeOf(error), param, code }, generationId }
}

/** Builds the error event of a stream, in a form that all versions read. */
export function streamError(error: GatewayError): object {
  const { status, message, code } = error
  const isRetryable = status === 408 || status === 409 || status === 429 || status >= 500
  return { message, type: typeOf(error), code: code ?? typeOf(error), statusCode: status, isRetryable }
}

/** Endpoints of ours that serve what this protocol does not, by what the paths begin with. */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^embedding-model/, 'POST /v1/embeddings'],
  [/^image-model/, 'POST /v1/images/generations'],
  [/^reranking-model/, 'POST /v1/rerank'],
  [/^speech-model/, 'POST /v1/audio/speech'],
  [/^transcription-model/, 'POST /v1/audio/transcriptions'],
  [/^(?:decision|evaluation)-model/, 'POST /v1/systemone'],
  [/^video-model/, 'POST /v1/videos'],
  [/^realtime-model/, 'POST /v1/realtime/client_secrets'],
]

/** `path` is what stands behind the prefix. */
export function notServed(path: string): GatewayError {
  const elsewhere = ELSEWHERE.find(([pattern]) => pattern.test(path))?.[1]
  const hint = elsewhere
    ? `the AI SDK protocol serves language models only; use ${elsewhere}.`
    : 'the AI SDK protocol is served at language-model, config and credits.'
  return errors.notFound(`"${path.slice(0, 100)}" is not served here: ${hint}`)
}

/** A 404 for a prefix of an unknown version of the protocol. */
export const notAVersion = (prefix: string): GatewayError =>
  errors.notFound(
    `"${prefix}" is not a supported version of the AI SDK protocol. Use /v1/ai, /v3/ai or /v4/ai for AI SDK 5, 6 or 7.`,
  )
