/** Client wire of the authorization server: JSON values and pages; errors are `{error, error_description}`. */
import type { Codec } from '../core/codec.ts'
import type { GatewayError } from '../lib/error.ts'
import { jsonRpc } from './json-rpc.ts'

/** `errorBody` says errors; the encoder is that of the MCP endpoint: a value, or bytes of their own type. */
export const oauthCodec = (errorBody: (error: GatewayError) => object, prepare: () => void): Codec<never> => ({
  ...jsonRpc,
  wire: 'oauth',
  error: errorBody,
  prepare,
})
