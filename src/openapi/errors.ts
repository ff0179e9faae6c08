/** Answers to refused requests: one for each status and each wire, and the bodies of errors. */
import { type Schema, s } from '../core/schema.ts'
import { errorBody, errors, GatewayError } from '../lib/error.ts'
import { constant, type ErrorForm, named, orNull } from './row.ts'

const text = orNull(s.string())

/** The error of most endpoints. */
export const error = named(
  'Error',
  s.open({
    error: s.open({
      message: s.string(),
      type: s.string(),
      param: text,
      code: text,
      metadata: s.optional(s.open({ reason: s.optional(s.string()) })),
    }),
  }),
)

/** The error of the Messages API. */
export const messagesError = named(
  'MessagesError',
  s.open({
    type: s.enum('error'),
    error: s.open({
      type: s.enum(
        'invalid_request_error',
        'authentication_error',
        'billing_error',
        'permission_error',
        'not_found_error',
        'request_too_large',
        'rate_limit_error',
        'timeout_error',
        'api_error',
        'overloaded_error',
      ),
      message: s.string(),
      details: s.optional(s.open({ reason: s.optional(s.string()) })),
    }),
  }),
)

/** The error of Google's API: a `google.rpc.Status`. */
export const googleError = named(
  'GoogleError',
  s.open({
    error: s.open({
      code: s.integer(),
      message: s.string(),
      status: s.string(),
      details: s.optional(s.array(s.open({ '@type': s.string() }))),
    }),
  }),
)

/** The error of the AI SDK's protocol. */
export const aiSdkError = named(
  'AiSdkError',
  s.open({
    error: s.open({
      message: s.string(),
      type: s.string(),
      param: s.optional(s.unknown()),
      code: text,
    }),
    generationId: text,
  }),
)

/** The catalogue has one path for three wires: the headers of a client choose. */
export const catalogueError = named('CatalogueError', s.either(error, messagesError, googleError))

/** The error of the MCP endpoint. */
export const rpcError = named(
  'RpcError',
  s.open({
    jsonrpc: constant('2.0'),
    id: orNull(s.either(s.string(), s.integer())),
    error: s.open({ code: s.integer(), message: s.string(), data: s.optional(s.unknown()) }),
  }),
)

/** The error of the authorization server (RFC 6749 section 5.2). */
export const oauthError = named('OAuthError', s.open({ error: s.string(), error_description: s.optional(s.string()) }))

/** Words that stand for the arguments of the catalogue's errors. */
const WORDS = ['video', [], 'x']

/** Codes that the catalogue does not hold: of single endpoints, of connections, and of what a provider refused. */
const OTHERS: Readonly<Record<number, readonly string[]>> = {
  400: [
    'conflicting_credentials',
    'context_length_exceeded',
    'credentials_in_query',
    'instructions_locked',
    'instructions_too_large',
    'invalid_message',
    'invalid_request',
    'model_locked',
    'model_mismatch',
    'previous_response_not_found',
    'prompt_not_supported',
    'thread_unsupported_request',
    'tool_type_not_supported',
    'transcription_model_locked',
    'transcription_model_not_supported',
    'transcription_model_required',
    'unsupported_parameter',
    'unsupported_service_tier',
    'voice_not_supported',
  ],
  403: ['transcription_model_not_allowed'],
  413: ['bad_request'],
  414: ['uri_too_long'],
  417: ['expectation_failed'],
  431: ['bad_request', 'too_many_headers'],
  502: ['upstream_credential', 'upstream_error'],
  503: ['upstream_overloaded', 'upstream_quota'],
}

/** Codes by status: those of the catalogue, and all others. */
export function codesByStatus(): Map<number, Set<string>> {
  const found = new Map(Object.entries(OTHERS).map(([status, codes]) => [Number(status), new Set(codes)]))
  for (const make of Object.values(errors) as ((...words: unknown[]) => unknown)[]) {
    const made = make(...WORDS.slice(0, make.length))
    if (!(made instanceof GatewayError) || made.code === null) continue
    found.set(made.status, (found.get(made.status) ?? new Set()).add(made.code))
  }
  return found
}

const MEANINGS: Readonly<Record<number, string>> = {
  400: 'The request is invalid, or asks for what the model cannot do.',
  401: 'The key is missing, unknown, expired or revoked.',
  402: 'Credits or a limit do not cover the request.',
  403: 'A rule does not allow the request.',
  404: 'There is no such model or object, or no credential serves the model.',
  405: 'The path does not take this method.',
  406: 'No accepted content type can be answered.',
  408: 'The body of the request came too slowly.',
  410: 'The project is archived.',
  413: 'The body, or a file of it, is too large.',
  414: 'The address is too long.',
  415: 'The content type or the coding of the body is not taken here.',
  416: 'The range is outside of the content.',
  417: 'The header "expect" asks for more than "100-continue".',
  426: 'The path is a WebSocket.',
  429: 'A limit of requests is reached.',
  431: 'The headers are too large.',
  500: 'The gateway failed.',
  502: 'All providers failed.',
  503: 'A provider limits its requests, or the gateway cannot serve for the moment.',
  504: 'The provider took too long.',
  529: 'The gateway has no place for the request.',
}

/** Statuses of answers to refused requests. */
export const knownStatuses: readonly number[] = Object.keys(MEANINGS).map(Number)

/** Examples of statuses that most requests can have. */
const EXAMPLES: Readonly<Record<number, GatewayError>> = {
  400: errors.invalidField('messages', 'is required'),
  401: errors.noCredentials(),
  402: errors.insufficientCredits(),
  403: errors.forbidden('The key may not use this model.'),
  404: errors.modelNotFound('no-such-model'),
  413: errors.tooLarge(33_554_432),
  415: errors.unsupportedMediaType('text/plain'),
  429: errors.rateLimited('/v1/chat/completions', 12),
  502: errors.allProvidersFailed('the provider answered 500.'),
  503: errors.upstreamRateLimited(2),
  504: errors.upstreamTimeout('no answer came'),
  529: errors.overloaded(),
}

const FORMS: Readonly<Record<Exclude<ErrorForm, 'ErrorPage'>, Schema<unknown>>> = {
  Error: error,
  MessagesError: messagesError,
  GoogleError: googleError,
  AiSdkError: aiSdkError,
  CatalogueError: catalogueError,
  RpcError: rpcError,
  OAuthError: oauthError,
}

/** Statuses after which a client repeats its request when the header's seconds are over. */
const REPEATED = new Set([429, 503, 529])

/** The name of the answer in `components`. */
export const errorName = (form: ErrorForm, status: number): string => `${form}${status}`

/** The answer with its schema, which `schemaOf` puts into the document. */
export function errorAnswer(form: ErrorForm, status: number, schemaOf: (schema: Schema<unknown>) => object): object {
  const codes = [...(codesByStatus().get(status) ?? [])].sort()
  const example = EXAMPLES[status]
  const listed = codes.length > 0 && form === 'Error' ? ` Codes: ${codes.map(code => `\`${code}\``).join(', ')}.` : ''
  const headers = { 'x-request-id': { $ref: '#/components/headers/x-request-id' } }
  return {
    description: `${MEANINGS[status]}${listed}`,
    headers: REPEATED.has(status)
      ? { ...headers, 'retry-after': { $ref: '#/components/headers/retry-after' } }
      : headers,
    content:
      form === 'ErrorPage'
        ? { 'text/html': { schema: schemaOf(s.string()) } }
        : {
            'application/json': {
              schema: schemaOf(FORMS[form]),
              ...(form === 'Error' && example && { example: errorBody(example) }),
            },
          },
  }
}
