/** An endpoint is a row: its method and path, its codec, and what serves it. */
import type { BodyType } from '../lib/body.ts'
import type { GatewayError } from '../lib/error.ts'
import type { Codec } from './codec.ts'
import type { Exchange } from './exchange.ts'
import type { Operation } from './operation.ts'
import type { Services } from './ports.ts'
import type { ErrorAnswer, Reply } from './reply.ts'

/** Methods that endpoints may have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** Describes the handler of a method and a path. */
export interface Endpoint {
  /** Also the group whose rate limit it counts against. */
  readonly name: string
  readonly method: Method
  /** Literal, or with parameters: `/v1/videos/{id}`; see `Router`. */
  readonly path: string
  /** A key of `chains` in gateway.yaml. */
  readonly chain: string
  /** The operation of its requests; absent where the gateway answers by itself. */
  readonly operation?: Operation
  readonly codec: Codec
  /** Ignores credentials: health probes may send any. */
  readonly open?: true | ((ex: Exchange) => boolean)
  /** Requests without a principal count against the limit of their client's address. */
  readonly limitsAddress?: true
  /** Takes the access tokens of OAuth clients, which stand for a key for less. */
  readonly takesTokens?: true
  /** Checks the request before its chain runs. Throws the GatewayError to answer with. */
  check?(ex: Exchange): void
  /** The answer to an error; undefined where the codec makes it. */
  errorAnswer?(error: GatewayError, ex: Exchange): ErrorAnswer | undefined
  /** `upstream`, or what answers locally at the end of the chain. */
  readonly serve: 'upstream' | ((ex: Exchange, services: Services) => Promise<Reply>)
  /** Only the tokens of the prompt are counted, at no cost, by providers whose wire has a `CountForm`. */
  readonly counts?: true
  /** Returns an answer when no target gave one; may throw another error. */
  readonly instead?: (ex: Exchange, error: GatewayError) => Reply | undefined
  /** Accepted body types; JSON by default. The content type of a request chooses among several. */
  readonly body?: BodyType | readonly BodyType[]
  /** Requests that ask for a WebSocket (RFC 6455) can become one, by `HttpRequest.upgrade`; elsewhere they are served without. */
  readonly upgrade?: true
  /** Bytes of request body that are accepted. */
  readonly bodyLimit: number
  /** JSON values that a request body may hold, where it is not the usual number. */
  readonly maxValues?: number
}
