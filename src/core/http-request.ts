/** The HTTP request of an exchange, as the listener got it. */

import type { Params } from '../lib/router.ts'
import { type Address, type AddressRange, clientAddress } from './address.ts'
import type { Upgrade } from './message-socket.ts'

/** As `node:http` gives them: names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>

/** Facts of a request that the listener has. */
export interface HttpFacts {
  /** Request method; GET by default. */
  method?: string
  headers: Headers
  /** The part after the `?`, undecoded. */
  query: string
  /** Parameters of the endpoint's path. */
  params?: Params
  /** Address of the client's end of the connection; '' when unknown. */
  peer?: string
  /** Local port of the connection; 0 when unknown. */
  port?: number
  /** See `HttpRequest.upgrade`. */
  upgrade?: Upgrade | undefined
}

const NO_PARAMS: Params = Object.freeze({})
const NO_PROXIES: readonly AddressRange[] = Object.freeze([])

/** Method, headers, query and connection of a request; the body is `Exchange.input`. */
export class HttpRequest {
  readonly method: string
  readonly headers: Headers
  readonly query: string
  readonly params: Params
  readonly peer: string
  readonly port: number
  /** For a WebSocket request at an endpoint that accepts them; called at most once. */
  readonly upgrade: Upgrade | undefined
  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: readonly AddressRange[] = NO_PROXIES

  constructor(facts: HttpFacts) {
    this.method = facts.method ?? 'GET'
    this.headers = facts.headers
    this.query = facts.query
    this.params = facts.params ?? NO_PARAMS
    this.peer = facts.peer ?? ''
    this.port = facts.port ?? 0
    this.upgrade = facts.upgrade
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  /** The client's address, if known. */
  get clientAddress(): Address | undefined {
    return clientAddress(this.peer, this.header('x-forwarded-for'), this.trustedProxies)
  }
}
