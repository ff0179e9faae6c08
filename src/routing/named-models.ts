/** The models that one request names, each as a query of its own: what `plan` and the selector take. */
import { errors, GatewayError } from '../lib/error.ts'
import { type PlanOptions, plan, type Requested, type RoutePlan, requestedBy } from './plan.ts'
import { checkProviders, orderOf, withoutSuffix } from './preferences.ts'
import { RequestQuery, type RoutingQuery } from './query.ts'
import { targetsOf, virtualOf } from './virtual-models.ts'

/** One model that a request names, and what it means. */
export interface NamedModel {
  readonly query: RoutingQuery
  readonly requested: Requested
  /** The virtual model that has led to it, as the request names it. */
  readonly virtual?: string | undefined
}

/** One that can be served. */
export interface PlannedModel {
  readonly query: RoutingQuery
  readonly found: RoutePlan
}

/** Whether a request names one model, and says nothing else that routing must read. */
export const namesOne = ({
  request: { model, models, provider },
  catalog,
}: Pick<RoutingQuery, 'request' | 'catalog'>) =>
  !models && !provider && withoutSuffix(model).strategy === undefined && !virtualOf(catalog, model)

/** In the order in which they are to be tried; at least one. Throws the 4xx that names what is unknown. */
export function namedModels(query: RoutingQuery, random: () => number = Math.random): readonly NamedModel[] {
  const { request, catalog } = query
  const { models, provider: preferences, model } = request
  if (namesOne(query)) return [{ query, requested: requestedBy(query) }]
  if (preferences) checkProviders(catalog, preferences)
  const names = [...new Set([model, ...(models ?? [])])]
  const meant = names.flatMap(name => meaningsOf(query, name, random))
  // With a provider named, nothing is left to sort.
  const isPinned = meant.every(
    ({ requested, virtual }) => requested.requestedProvider !== null && virtual === undefined,
  )
  if (isPinned && preferences?.sort) {
    throw errors.combination('provider.sort cannot be combined with a provider-prefixed model.', 'provider.sort')
  }
  const goesOn = preferences?.allow_fallbacks !== false || orderOf(query) !== undefined
  const failover = query.failover && goesOn
  return meant.map(({ requested, name, strategy, virtual }) => {
    const routing =
      requested.requestedProvider === null ? (request.routing ?? strategy ?? preferences?.sort) : undefined
    const own = Object.assign({}, request, { model: name, routing: isPinned ? request.routing : routing })
    return { query: new RequestQuery(factsOf(query), catalog, own, query.session, failover), requested, virtual }
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

interface Meaning {
  readonly name: string
  readonly strategy: ReturnType<typeof withoutSuffix>['strategy']
  readonly requested: Requested
  readonly virtual?: string
}

/** Meanings of one name: several for a virtual model. */
function meaningsOf(query: RoutingQuery, written: string, random: () => number): readonly Meaning[] {
  const { name, strategy } = withoutSuffix(written)
  const model = virtualOf(query.catalog, name)
  if (!model) return [meaningOf(query, written)]
  const suffix = written.slice(name.length)
  const own = { ...(strategy === undefined ? {} : { strategy }) }
  return targetsOf(model, query, random).map(target => ({
    ...meaningOf(query, target),
    ...own,
    virtual: name + suffix,
  }))
}

function meaningOf({ catalog, principal, request }: RoutingQuery, written: string): Meaning {
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
