/** Client wire of the MCP endpoint: a JSON value, a text of another type, or a stream of events; errors are JSON-RPC. */
import type { Codec, Encoded, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import { stringifyLossless } from '../json/lossless.ts'
import { errors, type GatewayError } from '../lib/error.ts'

/** Error codes of JSON-RPC, of MCP, and those that MCP servers use by HTTP status. */
export const codes = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  server: -32_000,
  unauthorized: -32_001,
  headerMismatch: -32_020,
  unsupportedVersion: -32_022,
} as const

/** Has no request decoding: the endpoint parses messages by itself. */
export const jsonRpc: Codec<never> = {
  wire: 'json-rpc',
  decode() {
    throw errors.internal(new Error('this endpoint has no operation'))
  },
  encoder: () => new RpcEncoder(),
  error: rpcBody,
}

/** `details`: code, id and data of an error, if known. */
export function rpcBody({ status, code, message, details }: GatewayError): object {
  const { code: said, id = null, data } = details ?? {}
  return { jsonrpc: '2.0', id, error: { code: said ?? codeOf(status, code), message, data } }
}

function codeOf(status: number, code: string | null): number {
  if (code === 'invalid_json') return codes.parse
  if (status === 400) return code === 'ambiguous_credentials' ? codes.unauthorized : codes.invalidRequest
  if (status === 401 || status === 403 || status === 410) return codes.unauthorized
  return status === 500 || status === 503 ? codes.internal : codes.server
}

class RpcEncoder implements Encoder {
  contentType = 'application/json'
  #out: Encoded = ''

  write(batch: readonly Event[]): string | undefined {
    let said = ''
    for (const event of batch) {
      if (event.type === 'result')
        this.#out = event.value === undefined ? '' : stringifyLossless(JSON.stringify(event.value))
      if (event.type !== 'bytes') continue
      this.contentType = event.contentType ?? this.contentType
      said += event.bytes.toString()
    }
    return said || undefined
  }

  end(): Encoded {
    return this.#out
  }

  fail(): string {
    return ''
  }
}

/** Client wire of the authorization server. `errorBody` says errors; answers are values, or bytes of their own type. */
export const oauthCodec = (errorBody: (error: GatewayError) => object, prepare: () => void): Codec<never> => ({
  ...jsonRpc,
  wire: 'oauth',
  error: errorBody,
  prepare,
})
