/** Converts a request's provider and price preferences for routing (docs/routing.md#routing-by-request). */
import type { ProviderPreferences } from '../core/chat-request.ts'
import type { Mapping } from '../core/translator.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { anyOf, similar } from '../lib/nearest.ts'
import { priceExcess } from '../policy/rules.ts'
import { admits } from './policy.ts'
import type { RoutingQuery } from './query.ts'
import type { Strategy } from './score.ts'

const MAX_LISTED_PROVIDERS = 4

const SUFFIXES: Readonly<Record<string, Strategy>> = { ':floor': 'price', ':nitro': 'throughput' }

/** A name as a client writes it, without its suffix, and the strategy that this stands for. */
export function withoutSuffix(name: string): { readonly name: string; readonly strategy?: Strategy } {
  for (const suffix in SUFFIXES) {
    if (name.length > suffix.length && name.endsWith(suffix)) {
      return { name: name.slice(0, -suffix.length), strategy: SUFFIXES[suffix]! }
    }
  }
  return { name }
}

/** Throws a 400 for a provider that the caller's catalogue does not have. It suggests those that serve the caller. */
export function checkProviders({ catalog, principal }: RoutingQuery, preferences: ProviderPreferences): void {
  const { providers } = catalog
  for (const list of ['order', 'only', 'ignore'] as const) {
    for (const [index, id] of (preferences[list] ?? []).entries()) {
      if (providers.has(id)) continue
      const near = similar(
        id,
        [...providers.keys()].filter(one => admits(providers.get(one)!, principal)),
      )
      const hint = near.length > 0 ? ` Did you mean ${anyOf(near.map(one => `"${one}"`))}?` : ''
      const at = `provider.${list}[${index}]`
      throw errors.invalidField(at, `there is no provider "${id}".${hint}`)
    }
  }
}

/** Providers in the order of the request; undefined where it has none. */
export const orderOf = ({ request }: Pick<RoutingQuery, 'request'>): readonly string[] | undefined => {
  const { order } = request.provider ?? {}
  return order && order.length > 0 ? order : undefined
}

/** The offers that the request leaves. Throws the 400 that names the field which leaves none. */
export function preferred(query: RoutingQuery, offers: readonly Mapping[]): readonly Mapping[] {
  const { provider: preferences, model } = query.request
  if (!preferences) return offers
  let left = offers
  for (const [field, isLeft] of conditionsOf(query, preferences)) {
    const narrowed = left.filter(isLeft)
    if (narrowed.length === 0) throw noneLeft(field, model, left)
    left = narrowed
  }
  return left
}

type Condition = readonly [field: string, isLeft: (mapping: Mapping) => boolean]

function* conditionsOf(query: RoutingQuery, preferences: ProviderPreferences): Generator<Condition> {
  const { only, ignore, max_price: limits, allow_fallbacks: goesOn } = preferences
  const order = orderOf(query)
  if (only) yield ['only', ({ provider }) => only.includes(provider.id)]
  if (order && goesOn === false) yield ['order', ({ provider }) => order.includes(provider.id)]
  if (ignore) yield ['ignore', ({ provider }) => !ignore.includes(provider.id)]
  if (limits) {
    const most = { maxInputPrice: limits.prompt, maxOutputPrice: limits.completion }
    yield ['max_price', mapping => priceExcess(most, mapping, query) === undefined]
  }
}

/** `left`: the offers that `field` excludes. */
function noneLeft(field: string, model: string, left: readonly Mapping[]): GatewayError {
  const ids = [...new Set(left.map(({ provider }) => provider.id))]
  const named = ids.length > MAX_LISTED_PROVIDERS ? [...ids.slice(0, MAX_LISTED_PROVIDERS), 'others'] : ids
  const served = field === 'max_price' ? 'costs more at' : 'is served by'
  const at = `provider.${field}`
  return errors.unsupported(`${at}: leaves no provider of "${model}", which ${served} ${anyOf(named)}.`, at)
}

/** The candidates of the providers that `order` names first, as it has them; the others as they were. */
export function inOrder<G extends { readonly candidate: { readonly mapping: Mapping } }>(
  ranked: readonly G[],
  order: readonly string[],
): G[] {
  const placeOf = ({ candidate }: G) => {
    const place = order.indexOf(candidate.mapping.provider.id)
    return place < 0 ? order.length : place
  }
  return [...ranked].sort((a, b) => placeOf(a) - placeOf(b))
}
