/** What routing reads of an exchange whose input has been read. */
import type { Exchange } from '../core/exchange.ts'
import type { Terms } from '../core/money.ts'
import type { PricedRequest } from '../core/policy.ts'
import type { RoutedRequest, RoutingQuery } from '../routing/query.ts'
import { sessionName } from '../routing/session-affinity.ts'

/** A class, because V8 makes a new hidden class for each object literal that has accessors. */
export class ExchangeQuery implements RoutingQuery {
  readonly operation: RoutingQuery['operation']
  readonly request: RoutedRequest
  readonly streaming: boolean
  readonly catalog: RoutingQuery['catalog']
  readonly snapshot: RoutingQuery['snapshot']
  readonly principal: RoutingQuery['principal']
  readonly policy: RoutingQuery['policy']
  readonly access: RoutingQuery['access']
  readonly at: number
  readonly session: string | undefined
  readonly failover: boolean
  readonly #priced: PricedRequest

  constructor(ex: Exchange) {
    this.operation = ex.operation
    this.request = ex.request!
    this.streaming = ex.streaming
    this.catalog = ex.catalog
    this.snapshot = ex.snapshot
    this.principal = ex.principal
    this.policy = ex.policy
    this.access = ex.access
    this.at = ex.at
    this.session = sessionName(ex.headers, ex.operation, this.request)
    this.failover = ex.header('x-no-fallback') !== 'true'
    this.#priced = ex
  }

  get promptTokens(): number {
    return this.#priced.promptTokens
  }

  get terms(): Terms {
    return this.#priced.terms
  }
}
