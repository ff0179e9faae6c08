/** The catalogue of all errors that the gateway raises itself, and their form for clients. */
import { CLIENT_CLOSED, type ErrorInit, GatewayError } from './gateway-error.ts'

export { CLIENT_CLOSED, type ErrorInit, GatewayError } from './gateway-error.ts'

/** A thrown value as a GatewayError; any other value becomes a 500 that reveals nothing of its cause. */
export const asError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : errors.internal(thrown)

/** Converts what is thrown while an answer is read. Whatever breaks a decoder is its provider's failure. */
export const asAnswerError = (thrown: unknown, status?: number): GatewayError =>
  thrown instanceof GatewayError ? thrown : errors.invalidAnswer('it cannot be read', status, thrown)

const invalid = (status: number, code: string | null, message: string, param?: string | null) =>
  new GatewayError({ status, type: 'invalid_request_error', code, message, param })

/** The `reason` in the details of an error whose request was not tried everywhere. */
export const RETRY_BUDGET_SPENT = 'retry_budget_spent'

/** The purchase that exceeds the balance. It completes the sentence "the balance does not cover …". */
export interface Unaffordable {
  readonly what: string
  /** The alternative to adding credits. */
  readonly instead: string
}

/** Seconds, from 1 to 3. */
const jittered = () => 1 + Math.floor(Math.random() * 3)
const retryAfter = (seconds: number) => ({ 'retry-after': String(Math.max(1, Math.ceil(seconds))) })

/** Type and code values: docs/contract.md#errors. Messages say what was wrong, where, and what would be right. */
export const errors = {
  invalidJson: (detail: string) => invalid(400, 'invalid_json', `The request body is not valid JSON: ${detail}`),
  invalidFormData: (detail: string) =>
    invalid(400, 'invalid_form_data', `The request body is not valid multipart/form-data: ${detail}.`),
  partTooLarge: (name: string, limit: number) =>
    invalid(413, 'request_too_large', `The form field "${name}" is larger than ${limit} bytes.`, name),
  tooDeep: (limit: number) => invalid(400, 'too_deep', `The request body nests deeper than ${limit} levels.`),
  tooManyElements: (limit: number, what = 'JSON values') =>
    invalid(400, 'too_many_elements', `The request body holds more than ${limit} ${what}.`),
  nameTooLong: (limit: number) =>
    invalid(400, 'too_many_elements', `The request body has a name of more than ${limit} characters.`),
  tooManyNames: (limit: number) =>
    invalid(400, 'too_many_elements', `The request body has more than ${limit} different names.`),
  invalidParameters: (message: string, param?: string | null) => invalid(400, 'invalid_parameters', message, param),
  /** `rule`: what is wrong with the field, or what would be right. */
  invalidField: (field: string, rule: string) => errors.invalidParameters(`${field}: ${rule}`, field),
  unsupported: (message: string, param: string, code = 'model_not_supported') => invalid(400, code, message, param),
  combination: (message: string, param: string) => invalid(400, 'unsupported_parameter_combination', message, param),
  /** `taken`: addresses that the field accepts. */
  urlNotAllowed: (param: string, taken = 'a public http(s) address or a data URL') =>
    invalid(400, 'url_not_allowed', `${param}: this URL is not allowed: use ${taken}.`, param),
  callbackNotAllowed: () =>
    invalid(
      400,
      'url_not_allowed',
      'callback_url: this URL is not allowed: use an https address of a public server.',
      'callback_url',
    ),
  /** One message for every failure to fetch, so that it reveals nothing of the internal network. */
  urlNotFetched: (param: string) =>
    invalid(
      400,
      'url_not_allowed',
      `${param}: nothing could be fetched from this URL. Use an https URL of a public server that answers in time, or send the content itself.`,
      param,
    ),
  imageTooLarge: (limit: number, param: string) =>
    invalid(400, 'image_too_large', `${param}: the image exceeds the limit of ${limit} bytes.`, param),
  notAnImage: (detail: string, param: string) =>
    invalid(
      400,
      'not_an_image',
      `${param}: this URL does not return an image: ${detail}. Use a PNG, JPEG, GIF or WebP.`,
      param,
    ),
  /** A form's file that is not an image. */
  fileNotAnImage: (param: string) =>
    invalid(400, 'not_an_image', `${param}: the file is not an image. Use a PNG, JPEG, GIF or WebP.`, param),
  fileTooLarge: (limit: number, param: string) =>
    invalid(413, 'request_too_large', `${param}: the file exceeds the limit of ${limit} bytes.`, param),
  /** The provider's explanation for rejected content. */
  contentFiltered: (message: string) =>
    new GatewayError({
      status: 400,
      type: 'invalid_request_error',
      code: 'content_filter',
      message,
      upstreamStatus: 200,
    }),
  badRequest: (message: string) => invalid(400, 'bad_request', message),
  ambiguousCredentials: () =>
    invalid(
      400,
      'ambiguous_credentials',
      'Two different credentials were sent. Send one: "Authorization: Bearer <key>" or "x-api-key: <key>".',
    ),
  noCredentials: () =>
    new GatewayError({
      status: 401,
      type: 'invalid_request_error',
      code: 'invalid_api_key',
      message:
        "No API key provided. Expected 'Authorization: Bearer <API_KEY>' header or 'x-api-key: <API_KEY>' header.",
      headers: { 'www-authenticate': 'Bearer' },
    }),
  /** Begins with OpenAI's words, by which LiteLLM recognizes this error among other 4xx. */
  invalidKey: (why = 'it is unknown or was revoked. Send a key of this gateway.') =>
    errors.invalidToken(`Incorrect API key provided: ${why}`),
  invalidToken: (message: string) => refusedToken('invalid_api_key', message),
  invalidClientSecret: () =>
    refusedToken(
      'invalid_client_secret',
      'The client secret is unknown, or it has expired. Make another one: POST /v1/realtime/client_secrets.',
    ),
  /** `left`: what the credits come to for the request; `instead`: what else would do. */
  insufficientCredits: (left = 'the balance does not cover it', instead = 'make the request smaller') =>
    invalid(
      402,
      'billing_error',
      `The organization has insufficient credits for this request: ${left}. ` +
        `Add credits${instead && `, ${instead},`} or use a cheaper model.`,
    ),
  /** An answer whose provider takes no output limit. */
  unlimited: () =>
    invalid(
      402,
      'billing_error',
      'The organization has insufficient credits for this request: its provider takes no output limit, and the ' +
        'balance does not cover the longest answer. Add credits, ask for a lower effort, or use another model.',
    ),
  /** A used-up limit, budget or allowance. */
  spent: (message: string) => invalid(402, 'billing_error', message),
  /** A limit of the organization's own key at a provider; another credential may serve the request. */
  providerKeySpent: (until: string) =>
    invalid(402, 'billing_error', `The organization's key for the provider reached its usage limit.${until}`).with({
      failover: true,
    }),
  /** `what` has no price: a model, or a feature of it. */
  unpriced: (model: string, provider: string, what = '') =>
    invalid(
      402,
      'billing_error',
      `The price of ${what}${provider}/${model} is unknown, so it cannot be billed to credits. ` +
        'Set its pricing in the provider manifest, or "unpriced: allow".',
    ),
  /** Costs of the operator that no price covers. */
  ownKeyOnly: (param: string) =>
    invalid(
      400,
      'own_key_required',
      `${param}: not available with the gateway's credentials. Use your own key for the provider.`,
      param,
    ),
  /** In projects with the mode `api-keys`. */
  noProviderKey: (model: string, providers: readonly string[]) =>
    invalid(
      400,
      'no_provider_key',
      `The project's mode is "api-keys", and the organization has no key for a provider of "${model}": ` +
        `add one for ${providers.join(' or ')}, or set the mode to "hybrid" or "credits".`,
      'model',
    ),
  forbidden: (message: string) => invalid(403, 'permission_denied', message),
  modelDenied: (message: string) => invalid(403, 'model_denied', message, 'model'),
  notFound: (message: string) => invalid(404, 'not_found', message),
  /** `file`: where an operator adds models. */
  modelNotFound: (model: string, hint = '', file?: string) =>
    invalid(
      404,
      'model_not_found',
      `The model "${model}" does not exist.${hint} GET /v1/models lists all${file ? `; operators add models in ${file}` : ''}.`,
      'model',
    ),
  /** Changes to the error of a request whose remaining providers were not tried. */
  retryBudgetSpent: (detail: string): Partial<ErrorInit> => ({
    message:
      'Not every provider was tried: recent failures have spent the retry budget of this model. It refills within a ' +
      `minute. The last failure: ${detail}`,
    details: { reason: RETRY_BUDGET_SPENT },
    remedy: 'Raise "retry.reserve" or "retry.budget" of the filter "route".',
  }),
  /** Nothing that a caller repeats changes this. `reason`: what its providers lack; `remedy`: for the operator alone. */
  modelNotAvailable: (model: string, reason: string, remedy?: string) =>
    invalid(
      404,
      'model_not_available',
      `The model "${model}" is not available: ${reason}. GET /v1/models lists the models that are.`,
      'model',
    ).with({ remedy }),
  upgradeRequired: (path: string) =>
    invalid(426, 'upgrade_required', `${path} is a WebSocket: connect to it by wss://, version 13.`).with({
      headers: { upgrade: 'websocket', 'sec-websocket-version': '13' },
    }),
  realtimeDisabled: () =>
    new GatewayError({
      status: 503,
      type: 'api_error',
      code: 'realtime_disabled',
      message: 'Realtime sessions are turned off: the operator turns them on with "realtime: { enabled: true }".',
    }),
  methodNotAllowed: (method: string, allow: string[]) =>
    new GatewayError({
      status: 405,
      type: 'invalid_request_error',
      code: 'method_not_allowed',
      message: `Method ${method} is not allowed here; use ${allow.join(' or ')}.`,
      headers: { allow: allow.join(', ') },
    }),
  requestTimeout: () =>
    new GatewayError({ status: 408, type: 'timeout_error', code: 'timeout', message: 'The request took too long.' }),
  archived: () => invalid(410, null, 'This project is archived and no longer available.'),
  tooLarge: (limit: number) =>
    invalid(413, 'request_too_large', `The request body is larger than the limit of ${limit} bytes.`),
  idempotencyKeyReused: () =>
    invalid(
      400,
      'idempotency_key_reused',
      'This idempotency-key was sent with another request. Send the same request, or another key.',
    ),
  idempotencyKeyInUse: () =>
    invalid(
      400,
      'idempotency_key_in_use',
      'A request with this idempotency-key is still in progress. Please retry.',
    ).with({ headers: retryAfter(1) }),
  /** `what` is a kind of job: `video`. */
  jobNotReady: (what: string) =>
    invalid(400, `${what}_not_ready`, `The ${what} is not ready yet: wait until its status is "completed".`),
  jobFailed: (what: string, state: string) =>
    invalid(400, `${what}_failed`, `The ${what} has no content: its status is "${state}".`),
  jobNotCancelable: (what: string) =>
    invalid(400, `${what}_not_cancelable`, `The provider of this ${what} cannot cancel it: wait until it has ended.`),
  jobBusy: () => unavailable('job_busy', 'The job is being polled.').with({ headers: retryAfter(1) }),
  rangeNotSatisfiable: (size: number) =>
    invalid(416, 'range_not_satisfiable', `The range is outside the content, which has ${size} bytes.`).with({
      headers: { 'content-range': `bytes */${size}` },
    }),
  contentToken: () =>
    new GatewayError({
      status: 401,
      type: 'invalid_request_error',
      code: 'invalid_token',
      message: 'The token is invalid or has expired.',
    }),
  /** `taken`: media types that the endpoint accepts. */
  unsupportedMediaType: (got: string | undefined, taken: readonly string[] = ['application/json']) =>
    invalid(
      415,
      'unsupported_media_type',
      `Content-Type must be ${taken.join(' or ')}, got ${got ? `"${got.slice(0, 100)}"` : 'none'}.`,
    ),
  /** `accepted`: the codings that may be sent, as `accept-encoding` lists them. */
  unsupportedEncoding: (got: string, accepted: string) =>
    new GatewayError({
      status: 415,
      type: 'invalid_request_error',
      code: 'unsupported_encoding',
      message: `Content-Encoding "${got.slice(0, 50)}" is not supported; send ${accepted} or identity.`,
      headers: { 'accept-encoding': accepted },
    }),
  rateLimited: (path: string, seconds: number) =>
    new GatewayError({
      status: 429,
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: `Rate limit exceeded for ${path}. Please retry after ${Math.max(1, Math.ceil(seconds))} seconds.`,
      headers: retryAfter(seconds),
    }),
  /** `limit` and `whose` complete «The limit of 60 requests per minute (rpm) of key "ci" is reached.» */
  limitReached: (limit: string, whose: string, seconds: number, details: Readonly<Record<string, unknown>>) =>
    new GatewayError({
      status: 429,
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: `The limit of ${limit} of ${whose} is reached. Please retry after ${Math.max(1, Math.ceil(seconds))} seconds.`,
      headers: retryAfter(seconds),
      details,
    }),
  tooManyPipelined: (limit: number) =>
    new GatewayError({
      status: 429,
      type: 'rate_limit_error',
      code: 'too_many_pipelined',
      message: `A connection may have fewer than ${limit} requests without an answer. Wait for answers, or open another one.`,
    }),
  /** Retry after a second: a permit may be free in a moment (docs/contract.md#rate-limits). */
  tooManyConcurrent: (limit: number) =>
    new GatewayError({
      status: 429,
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: `Too many concurrent requests for this organization (limit: ${limit}). Please retry after 1 seconds.`,
      headers: retryAfter(1),
    }),
  aborted: () => invalid(CLIENT_CLOSED, 'request_cancelled', 'Client Closed Request'),
  /** The client is there, and charged as if it had left. */
  readTooSlowly: () =>
    invalid(CLIENT_CLOSED, 'request_cancelled', 'The answer was read too slowly, so its provider ended it.'),
  internal: (cause: unknown) =>
    new GatewayError({ status: 500, type: 'api_error', code: null, message: 'Internal Server Error', cause }),
  unreachable: (detail: string, cause?: unknown) =>
    upstream(502, 'fetch_failed', `Failed to connect to the upstream provider: ${detail}.`, 0, cause),
  invalidAnswer: (detail: string, status = 200, cause?: unknown) =>
    upstream(
      502,
      'upstream_invalid_response',
      `The upstream provider sent an invalid answer: ${detail}.`,
      status,
      cause,
    ),
  truncated: () =>
    upstream(502, 'upstream_stream_truncated', 'The upstream provider ended the stream before it was complete.', 200),
  upstreamTimeout: (phase: string) =>
    new GatewayError({
      status: 504,
      type: 'timeout_error',
      code: 'timeout',
      message: `The upstream provider timed out: ${phase}.`,
      failover: true,
      upstreamStatus: 0,
    }),
  upstreamRateLimited: (seconds: number) =>
    upstream(
      503,
      'upstream_rate_limited',
      'Every provider of this model is rate limited. Please retry later.',
      429,
    ).with({ headers: retryAfter(seconds) }),
  /** Nothing was sent: a limit of the gateway's credential is reached. Another one may serve the request. */
  credentialLimited: (ms: number) =>
    new GatewayError({
      status: 503,
      type: 'upstream_error',
      code: 'upstream_rate_limited',
      message: "The limits of the gateway's credentials at the provider are reached. Please retry later.",
      failover: true,
      retryAfterMs: ms,
    }),
  allProvidersFailed: (detail: string) =>
    upstream(502, 'all_providers_failed', `All providers failed. The last error was: ${detail}`, 502),
  /** All that was tried was refused: nothing but a change of credentials helps. */
  credentialsRefused: (failed: string): Partial<ErrorInit> => ({
    message: `${failed} Every credential that was tried was refused. Ask its owner to replace it, or use another model.`,
    remedy:
      'Run `gatewayctl providers health` to see which credentials rest. Replace them, or add another one, and reload.',
  }),
  billingUnavailable: (cause: unknown) => unavailable('billing_unavailable', 'The ledger is unavailable.', cause),
  storeUnavailable: (cause: unknown) => unavailable('store_unavailable', 'The key store is unavailable.', cause),
  issuerUnavailable: (issuer: string, cause: unknown) =>
    unavailable('issuer_unavailable', `The keys of the issuer "${issuer}" cannot be read.`, cause),
  responsesUnavailable: (cause: unknown) =>
    unavailable('store_unavailable', 'Stored responses cannot be read or written.', cause),
  contentUnavailable: (cause: unknown) => unavailable('store_unavailable', 'The content cannot be read.', cause),
  credentialUnavailable: (provider: string, cause: unknown) =>
    unavailable('credential_unavailable', `The organization's key for ${provider} cannot be read.`, cause),
  shuttingDown: () => unavailable('server_shutting_down', 'The gateway is shutting down.'),
  /** The provider has reached its concurrency limit; another one may serve the request. */
  providerBusy: (provider: string) =>
    new GatewayError({
      status: 529,
      type: 'overloaded',
      code: 'overloaded',
      message: `The gateway has reached its limit of concurrent requests to ${provider}. Please retry.`,
      headers: retryAfter(jittered()),
      failover: true,
    }),
  /** Clients retry after one to three seconds, so that they do not return all at once. */
  overloaded: () =>
    new GatewayError({
      status: 529,
      type: 'overloaded',
      code: 'overloaded',
      message: 'Gateway overloaded, please retry',
      headers: retryAfter(jittered()),
    }),
}

/** The error in the default client form: docs/contract.md#errors. */
export const errorBody = ({ message, type, param, code, details }: GatewayError) => ({
  error: details ? { message, type, param, code, metadata: details } : { message, type, param, code },
})

/** A credential that is refused, in the form of RFC 6750 section 3. */
function refusedToken(code: string, message: string) {
  return invalid(401, code, message).with({ headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
}

function upstream(status: number, code: string, message: string, upstreamStatus: number, cause?: unknown) {
  return new GatewayError({ status, type: 'upstream_error', code, message, failover: true, upstreamStatus, cause })
}

function unavailable(code: string, message: string, cause?: unknown) {
  const headers = retryAfter(jittered())
  return new GatewayError({ status: 503, type: 'api_error', code, message: `${message} Please retry.`, headers, cause })
}
