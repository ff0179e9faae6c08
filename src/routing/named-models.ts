/** The models that one request names, each as a query of its own: what `plan` and the selector take. */
import { errors, GatewayError } from '../lib/error.ts'
import { type PlanOptions, plan, type Requested, type RoutePlan, requestedBy } from './plan.ts'
import { checkProviders, orderOf, withoutSuffix } from './preferences.ts'
import { RequestQuery, type RoutedRequest, type RoutingQuery } from './query.ts'

/** One model that a request names, and what it means. */
export interface NamedModel {
  readonly query: RoutingQuery
  readonly requested: Requested
}

/** One that can be served. */
export interface PlannedModel {
  readonly query: RoutingQuery
  readonly found: RoutePlan
}

/** Whether a request names one model, and says nothing else that routing must read. */
export const namesOne = ({ model, models, provider }: RoutedRequest): boolean =>
  !models && !provider && withoutSuffix(model).strategy === undefined

/** In the order in which they are to be tried; at least one. Throws the 4xx that names what is unknown. */
export function namedModels(query: RoutingQuery): readonly NamedModel[] {
  const { request, catalog } = query
  const { models, provider: preferences, model } = request
  if (namesOne(request)) return [{ query, requested: requestedBy(query) }]
  if (preferences) checkProviders(catalog, preferences)
  const names = [...new Set([model, ...(models ?? [])])]
  const meant = names.map(name => meaningOf(query, name))
  // With a provider named, nothing is left to sort.
  const isPinned = meant.every(({ requested }) => requested.requestedProvider !== null)
  if (isPinned && preferences?.sort) {
    throw errors.combination('provider.sort cannot be combined with a provider-prefixed model.', 'provider.sort')
  }
  const goesOn = preferences?.allow_fallbacks !== false || orderOf(query) !== undefined
  const failover = query.failover && goesOn
  return meant.map(({ requested, name, strategy }) => {
    const routing =
      requested.requestedProvider === null ? (request.routing ?? strategy ?? preferences?.sort) : undefined
    const own = Object.assign({}, request, { model: name, routing: isPinned ? request.routing : routing })
    return { query: new RequestQuery(factsOf(query), catalog, own, query.session, failover), requested }
  })
}

/** Facts of a query for one with another request; prompt and terms are still computed when they are read. */
const factsOf = (query: RoutingQuery): ConstructorParameters<typeof RequestQuery>[0] => ({
  operation: query.operation,
  streaming: query.streaming,
  snapshot: query.snapshot,
  at: query.at,
  caller: query,
  get terms() {
    return query.terms
  },
  prompt: {
    get tokens() {
      return query.promptTokens
    },
  },
})

function meaningOf({ catalog, principal, request }: RoutingQuery, written: string) {
  const { name, strategy } = withoutSuffix(written)
  try {
    const requested = requestedBy({ catalog, principal, request: { model: name } })
    const requestedModel = requested.requestedModel + written.slice(name.length)
    return { name, strategy, requested: Object.assign({}, requested, { requestedModel }) }
  } catch (thrown) {
    throw request.models?.includes(written) && thrown instanceof GatewayError
      ? thrown.with({ param: 'models' })
      : thrown
  }
}

/** The plans of those that can be served. Throws the first error when none can. */
export function plansOf(named: readonly NamedModel[], options: PlanOptions): readonly PlannedModel[] {
  const planned: PlannedModel[] = []
  let error: GatewayError | undefined
  for (const { query, requested } of named) {
    try {
      planned.push({ query, found: plan(query, options, requested) })
    } catch (thrown) {
      if (named.length === 1 || !(thrown instanceof GatewayError)) throw thrown
      error ??= thrown
    }
  }
  if (planned.length === 0) throw error!
  return planned
}
