/** Builds the routing query of an exchange whose input has been read. */
import type { Exchange } from '../core/exchange.ts'
import { catalogOf } from '../core/policy.ts'
import { RequestQuery } from '../routing/query.ts'
import { sessionName } from '../routing/session-affinity.ts'

/** Its session is that of the headers or of the request; `x-no-fallback: true` forbids other targets. */
export class ExchangeQuery extends RequestQuery {
  constructor(ex: Exchange) {
    const request = ex.request!
    const session = sessionName(ex.http.headers, ex.operation, request)
    super(ex, catalogOf(ex), request, session, ex.header('x-no-fallback') !== 'true')
  }
}
