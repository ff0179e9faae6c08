/** Bodies of errors, one for each client wire. */
import { s } from '../core/schema.ts'
import { constant, named, orNull } from './row.ts'

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
