/** The models that one request names, each as a query of its own: what `plan` and the selector take. */
import type { Preset, RouteRule, VirtualModel } from '../core/catalog.ts'
import { NO_LABELS } from '../core/policy.ts'
import { estimateTokens } from '../core/usage.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { type PlanOptions, plan, type Requested, type RoutePlan, requestedBy } from './plan.ts'
import { checkProviders, orderOf, withoutSuffix } from './preferences.ts'
import { withPreset } from './presets.ts'
import { RequestQuery, type RoutedRequest, type RoutingQuery } from './query.ts'
import { ruleFor } from './rules.ts'
import { noTarget, targetsOf, virtualOf } from './virtual-models.ts'

/** One model that a request names, and what it means. */
export interface NamedModel {
  readonly query: RoutingQuery
  readonly requested: Requested
  /** The virtual model that has led to it, as the request names it. */
  readonly virtual?: string | undefined
  /** The request with what the virtual model sets; undefined where it sets nothing. */
  readonly changed?: RoutedRequest | undefined
  /** The virtual model that orders it by price or latency. */
  readonly sorted?: VirtualModel | undefined
  /** Ids of the virtual models that lead to it. */
  readonly through?: readonly string[] | undefined
}

/** One that can be served. */
export interface PlannedModel extends Pick<NamedModel, 'query' | 'virtual' | 'changed' | 'sorted'> {
  readonly found: RoutePlan
}

/** Whether a request names one model, and says nothing else that routing must read. */
export function namesOne(query: RoutingQuery): boolean {
  const { model, models, provider } = query.request
  if (models || provider || withoutSuffix(model).strategy !== undefined) return false
  return !virtualOf(query.catalog, model) && !ruleFor(model, query)
}

/** Names of the models that a name beside the request's own stands for. Throws a 403 where a rule denies it. */
export function namesMeant(query: RoutingQuery, name: string): readonly string[] {
  const { use = name, deny } = ruleFor(name, query) ?? {}
  if (deny !== undefined) throw errors.modelDenied(deny)
  const virtual = virtualOf(query.catalog, use)
  if (!virtual) return [use]
  const targets = targetsOf(virtual, query, Math.random)
  if (targets.length === 0) throw noTarget(virtual)
  return targets.map(target => target.name)
}

/** In the order in which they are to be tried; at least one. Throws the 4xx that names what is unknown. */
export function namedModels(
  query: RoutingQuery,
  random: () => number = Math.random,
  applied?: (rule: RouteRule) => void,
): readonly NamedModel[] {
  const { request, catalog } = query
  const { models, provider: preferences, model } = request
  if (namesOne(query)) return [{ query, requested: requestedBy(query) }]
  if (preferences) checkProviders(query, preferences)
  const names = [...new Set([model, ...(models ?? [])])]
  const refused: GatewayError[] = []
  const meant = names.flatMap(name => {
    const rule = ruleFor(withoutSuffix(name).name, query)
    if (rule) applied?.(rule)
    if (rule?.deny === undefined) return meaningsOf(query, name, rule?.use, random, refused)
    refused.push(errors.modelDenied(rule.deny).with({ param: name === model ? 'model' : 'models' }))
    return []
  })
  if (meant.length === 0) throw refused[0]!
  // With a provider named, nothing is left to sort.
  const isPinned = meant.every(
    ({ requested, virtual }) => requested.requestedProvider !== null && virtual === undefined,
  )
  if (isPinned && preferences?.sort) {
    throw errors.combination('provider.sort cannot be combined with a provider-prefixed model.', 'provider.sort')
  }
  return meant.map(({ requested, name, strategy, virtual, preset, sorted, through }) => {
    const changed = preset && withPreset(query, preset)
    const { routing: wished, provider } = changed ?? request
    const routing = requested.requestedProvider === null ? (wished ?? strategy ?? provider?.sort) : undefined
    const own = Object.assign({}, changed ?? request, { model: name, routing: isPinned ? request.routing : routing })
    const goesOn = provider?.allow_fallbacks !== false || orderOf({ request: own }) !== undefined
    const facts = factsOf(query, preset?.system)
    return {
      query: new RequestQuery(facts, catalog, own, query.session, query.failover && goesOn),
      requested,
      virtual,
      changed,
      sorted,
      through,
    }
  })
}

/** Facts of a query for one with another request; prompt and terms are still computed when they are read. */
const factsOf = (
  query: RoutingQuery,
  system: readonly string[] = [],
): ConstructorParameters<typeof RequestQuery>[0] => ({
  operation: query.operation,
  streaming: query.streaming,
  snapshot: query.snapshot,
  at: query.at,
  caller: {
    principal: query.principal,
    policy: query.policy,
    access: query.access,
    tenant: query.tenant,
    labels: { tags: query.tags ?? NO_LABELS.tags },
  },
  get terms() {
    return query.terms
  },
  prompt: {
    get tokens() {
      return query.promptTokens + estimateTokens(Buffer.byteLength(system.join('')))
    },
  },
})

interface Meaning {
  readonly name: string
  readonly strategy: ReturnType<typeof withoutSuffix>['strategy']
  readonly requested: Requested
  readonly virtual?: string
  readonly preset?: Preset | undefined
  readonly sorted?: VirtualModel | undefined
  readonly through?: readonly string[] | undefined
}

/** Meanings of one name: several for a virtual model. `use`: the model that a rule names in its place. */
function meaningsOf(
  query: RoutingQuery,
  written: string,
  use: string | undefined,
  random: () => number,
  refused: GatewayError[],
): readonly Meaning[] {
  const { name, strategy } = withoutSuffix(written)
  const suffix = written.slice(name.length)
  const used = use ?? name
  const model = virtualOf(query.catalog, used)
  if (!model) {
    const meaning = meaningOf(query, used + suffix)
    return [use === undefined ? meaning : Object.assign({}, meaning, { virtual: written })]
  }
  const own = { ...(strategy === undefined ? {} : { strategy }) }
  const unknown: GatewayError[] = []
  const targets = targetsOf(model, query, random)
  if (targets.length === 0) {
    refused.push(noTarget(model))
    return []
  }
  const meanings = targets.flatMap((target): Meaning[] => {
    const { preset, sorted, through } = target
    try {
      return [{ ...meaningOf(query, target.name), ...own, virtual: name + suffix, preset, sorted, through }]
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      // The name that a pattern leads to may exist at some of its targets alone.
      unknown.push(thrown)
      return []
    }
  })
  if (meanings.length === 0) throw unknown[0]!
  return meanings
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

/** A named model that cannot serve its request, and why. */
export interface Skipped {
  readonly named: NamedModel
  readonly error: GatewayError
}

/** The plans of those that can be served; `skipped` gets the others. Throws the first error when none can. */
export function plansOf(
  named: readonly NamedModel[],
  options: PlanOptions,
  skipped: Skipped[] = [],
): readonly PlannedModel[] {
  const planned: (PlannedModel & { readonly named: NamedModel })[] = []
  for (const one of named) {
    const { query, requested, virtual, changed, sorted } = one
    try {
      planned.push({ named: one, query, virtual, changed, sorted, found: plan(query, options, requested) })
    } catch (thrown) {
      if (named.length === 1 || !(thrown instanceof GatewayError)) throw thrown
      skipped.push({ named: one, error: thrown })
    }
  }
  if (planned.length === 0) throw skipped[0]!.error
  if (planned.length === 1 || !planned.some(({ virtual }) => virtual !== undefined)) return planned
  // A prompt that is too long for one target is no reason to refuse it, but one to ask another target.
  const fitting = planned.filter(one => one.virtual === undefined || fits(one))
  if (fitting.length === 0) return planned
  for (const one of planned) if (!fitting.includes(one)) skipped.push({ named: one.named, error: tooLong(one) })
  return fitting
}

const fits = ({ query, found }: PlannedModel): boolean =>
  found.targets.some(({ mapping: { contextLength = Number.POSITIVE_INFINITY } }) => query.promptTokens <= contextLength)

const tooLong = ({ query: { request, promptTokens } }: PlannedModel): GatewayError =>
  errors.unsupported(`The prompt of ${promptTokens} tokens is too long for "${request.model}".`, 'messages')
