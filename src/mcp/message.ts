/** Messages of JSON-RPC 2.0 as MCP uses them, and the check of their envelope. */
import { codes } from '../codecs/json-rpc.ts'
import { isObject } from '../json/json.ts'
import { GatewayError } from '../lib/error.ts'

/** The id of a request; a message without one is a notification. */
export type Id = string | number
/** The `params` of a request, or a `result`. */
export type Params = Readonly<Record<string, unknown>>

/** A request, with an id and within the bounds of the envelope. */
export interface RpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: Id
  readonly method: string
  readonly params?: Params | undefined
}
/** The `error` of an answer; `code` is one of `codes`. */
interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}
/** An answer; its id is null where the request's could not be read. */
export type RpcAnswer = { readonly jsonrpc: '2.0'; readonly id: Id | null } & (
  | { readonly result: Params }
  | { readonly error: RpcError }
)

/** The JSON-RPC error in the body of a refusal by HTTP status. */
interface RpcDetails {
  readonly code: number
  readonly id: Id | null
  readonly data?: unknown
}

/** A refusal by HTTP status. */
export const rpcError = (
  status: number,
  message: string,
  details: RpcDetails,
  headers?: Record<string, string>,
): GatewayError =>
  new GatewayError({
    status,
    type: 'invalid_request_error',
    code: status === 403 ? 'permission_denied' : 'invalid_message',
    message,
    headers,
    details: { ...details },
  })

/** An error that the SDK answers with this code and message. */
export const failure = (code: number, message: string): Error => Object.assign(new Error(message), { code })

const invalid = (message: string, id: Id | null = null) => rpcError(400, message, { code: codes.invalidRequest, id })

/** The request; undefined for a notification or a response, which get no answer. Throws 400 for an invalid envelope. */
export function requestOf(message: unknown): RpcRequest | undefined {
  if (Array.isArray(message)) throw invalid('Batches are not supported: send one message per request.')
  if (!isObject(message)) throw invalid('The message must be a JSON object.')
  const { jsonrpc, id, method, params } = message
  if (id !== undefined && !isId(id)) throw invalid('id must be a string or an integer.')
  if (jsonrpc !== '2.0') throw invalid('jsonrpc must be "2.0".', id)
  if (method === undefined && id !== undefined && ('result' in message || 'error' in message)) return undefined
  if (typeof method !== 'string') throw invalid('method must be a string.', id)
  if (params !== undefined && !isObject(params)) throw invalid('params must be an object.', id)
  return id === undefined ? undefined : { jsonrpc, id, method, params }
}

const isId = (id: unknown): id is Id => typeof id === 'string' || Number.isSafeInteger(id)
