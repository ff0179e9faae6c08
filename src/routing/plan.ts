/** Which targets may serve a request, in the order in which they are tried. */

import { isFor, isFree, isOffered, isOver, serves } from '../core/offer.ts'
import type { Op } from '../core/ops.ts'
import type { Mapping, Model, Target } from '../core/translator.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { DAY_MS } from '../lib/period.ts'
import { candidatesOf } from './candidate.ts'
import { admits, type Credentials, credentialsFor, isByok, type Payer, permitted, uncredentialed } from './policy.ts'
import { preferred } from './preferences.ts'
import type { RoutedRequest, RoutingQuery } from './query.ts'
import { capable } from './requirements.ts'
import { type ModelReference, resolve } from './resolve.ts'

const NEVER = '9999-12-31'

/** The lists behind `auto`, and how far a plan may go. */
export interface PlanOptions {
  /** Models that `auto` chooses from, best first. */
  readonly auto: readonly string[]
  /** Models for operations with a list of their own, by their `autoOption`. */
  readonly auto_images?: readonly string[]
  readonly auto_videos?: readonly string[]
  /** Also what others offer, although the model string names a provider. */
  readonly unpinned?: boolean
}

/** The resolved model string of a query. */
export interface Requested {
  readonly reference: ModelReference
  /** The model as the request names it, without a provider. */
  readonly requestedModel: string
  /** Its canonical id, or `auto`. */
  readonly requestedId: string
  /** Null where the model string names none. */
  readonly requestedProvider: string | null
}

/** Models and offers that may serve a query. */
export interface RoutePlan extends Requested {
  /** At least one. */
  readonly targets: readonly Target[]
}

interface Named extends Pick<RoutingQuery, 'catalog' | 'principal'> {
  readonly request: Pick<RoutedRequest, 'model'>
}

/** Throws as `resolve` does. */
export function requestedBy({ catalog, principal, request }: Named): Requested {
  const reference = resolve(catalog, request.model, principal)
  const isModel = reference.kind === 'model'
  return {
    reference,
    requestedModel: isModel ? reference.name : 'auto',
    requestedId: isModel ? reference.model.id : 'auto',
    requestedProvider: (isModel && reference.provider?.id) || null,
  }
}

/** Changes nothing, and depends on nothing else. Throws the 4xx that says why no target can serve the request. */
export function plan(query: RoutingQuery, options: PlanOptions, requested = requestedBy(query)): RoutePlan {
  const { request, operation } = query
  const { reference, requestedModel, requestedId, requestedProvider } = requested
  if (reference.kind === 'model' && reference.provider && request.routing && request.routing !== 'auto') {
    throw errors.combination('routing cannot be combined with a provider-prefixed model.', 'routing')
  }
  const op = operation.name
  const offered = offeredTo(query, reference, options)
  const wished = preferred(query, offered)
  const allowed = permitted(query, wished, request.model)
  const reachable = (mapping: Mapping) =>
    credentialsFor(query, mapping.provider).some(list => targets(mapping, op, list).some(isPayable))
  const circumstances = { promptTokens: () => query.promptTokens, reachable }
  const { mappings, error } = capable(allowed, operation, request, circumstances)
  if (error) throw error
  const live: Target[] = []
  for (const mapping of mappings) {
    for (const credentials of credentialsFor(query, mapping.provider)) live.push(...targets(mapping, op, credentials))
  }
  if (live.length === 0) {
    // An offer with a credential may lack what the request needs.
    const { error } = capable(allowed.filter(reachable), operation, request, circumstances)
    const { remedy } = uncredentialed(query, mappings, request.model)
    throw error?.with({ remedy }) ?? unreachable(query, mappings, wished.length < offered.length)
  }
  const payable = live.filter(isPayable)
  if (payable.length === 0) throw errors.unpriced(live[0]!.mapping.model.id, live[0]!.provider.id)
  return { reference, requestedModel, requestedId, requestedProvider, targets: payable }
}

/** The offers of what the model string names, to this caller. Throws the 4xx that says why there are none. */
function offeredTo(query: RoutingQuery, reference: ModelReference, options: PlanOptions): readonly Mapping[] {
  const { request, operation, principal } = query
  const isAuto = reference.kind === 'auto'
  const provider = isAuto || options.unpinned ? undefined : reference.provider
  const isFreeOnly = isAuto && request.free_models_only
  const isListed = isAuto && operation.autoOption !== undefined
  const today = Math.floor(query.at / DAY_MS)
  const offered: Mapping[] = []
  for (const model of isListed ? [firstAble(query, options)] : models(query, reference, options)) {
    for (const mapping of offers(model, operation.name, today)) {
      if ((!provider || mapping.provider === provider) && (!isFreeOnly || isFree(mapping))) offered.push(mapping)
    }
  }
  if (offered.length === 0) throw unserved(query.snapshot, request.model, reference, operation.name, dateOf(today))
  if (offered.every(mapping => admits(mapping.provider, principal))) return offered
  const admitted = offered.filter(mapping => admits(mapping.provider, principal))
  if (admitted.length === 0) throw errors.modelNotFound(request.model)
  return admitted
}

/** Why none of the offers can be called; `narrowed` where the request excludes others. */
function unreachable(query: RoutingQuery, offers: readonly Mapping[], narrowed: boolean): GatewayError {
  const { model } = query.request
  const error = uncredentialed(query, offers, model)
  if (!narrowed) return error
  const said = `provider: leaves no offer that can be called now. ${error.message}`
  return errors.unsupported(said, 'provider').with({ remedy: error.remedy })
}

/** Allows any price when the caller pays the provider itself. */
const isPayable = ({ mapping, credential }: Pick<Target, 'mapping' | 'credential'>): boolean =>
  mapping.price !== undefined || mapping.unpriced === 'allow' || isByok(credential)

/** Whether the caller has, or may use, a credential for an offer, and a price to pay. Its rules are another matter. */
export function isCallable(payer: Payer, mapping: Mapping): boolean {
  const { model, provider, wires } = mapping
  if (provider.priority <= 0 || ![...wires.keys()].some(op => serves(model, op))) return false
  try {
    return credentialsFor(payer, provider).some(credentials =>
      credentials.some(credential => isFor(mapping, credential) && isPayable({ mapping, credential })),
    )
  } catch (thrown) {
    // A key of the organization that cannot be opened makes no target; the log names it.
    if (thrown instanceof GatewayError) return false
    throw thrown
  }
}

function models(query: RoutingQuery, reference: ModelReference, options: PlanOptions): Model[] {
  if (reference.kind === 'model') return [reference.model]
  const { request, catalog } = query
  const chosen = options.auto.flatMap(id => catalog.models.get(id) ?? [])
  const isServed = ({ provider }: Mapping) => credentialsFor(query, provider).some(list => list.length > 0)
  const left = chosen
    .filter(model => !request.no_reasoning || !model.mappings.some(mapping => mapping.supports.has('reasoning')))
    .filter(model =>
      model.mappings.some(mapping => isServed(mapping) && (!request.free_models_only || isFree(mapping))),
    )
  if (left.length === 0)
    throw errors.modelNotAvailable('auto', 'no model that "auto" may choose has a credential and fits the request')
  return left
}

/** Returns the first live model of the operation's list that can serve the query, else the first live one. */
function firstAble(query: RoutingQuery, options: PlanOptions): Model {
  const { operation, request } = query
  const option = operation.autoOption as 'auto_images'
  const today = Math.floor(query.at / DAY_MS)
  const isServed = ({ provider }: Mapping) => credentialsFor(query, provider).some(list => list.length > 0)
  let first: Model | undefined
  for (const id of options[option] ?? []) {
    const model = query.catalog.models.get(id)
    const live = model ? offers(model, operation.name, today).filter(isServed) : []
    if (live.length === 0) continue
    if (!capable(live, operation, request).error) return model!
    first ??= model
  }
  if (first) return first
  throw errors.unsupported(
    `"auto" has no live model for this operation. Name a model, or list models under "${option}" of the route filter.`,
    'model',
  )
}

/** Mappings of each model by day. The catalogue itself never changes. */
const knownOffers = perObject(
  (_: Model) => new Map<Op, { readonly day: number; readonly mappings: readonly Mapping[] }>(),
)

/** The mappings of a model that serve this operation on `day`, in configured order. */
function offers(model: Model, op: Op, day: number): readonly Mapping[] {
  const byOp = knownOffers(model)
  let known = byOp.get(op)
  if (known?.day !== day) {
    known = { day, mappings: offersOn(model, op, dateOf(day)) }
    byOp.set(op, known)
  }
  return known.mappings
}

function offersOn(model: Model, op: Op, date: string): Mapping[] {
  return model.mappings
    .filter(mapping => isOffered(mapping, op) && mapping.provider.priority > 0)
    .filter(mapping => !isOver(mapping, date))
    .sort(byPriorityAndPrice)
}

const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

function unserved(snapshot: RoutingQuery['snapshot'], name: string, reference: ModelReference, op: Op, today: string) {
  if (reference.kind === 'model') {
    const { model, provider } = reference
    const offered = model.mappings.filter(mapping => !provider || mapping.provider === provider)
    const ends = offered.map(mapping => mapping.deactivatedAt ?? NEVER).sort()
    const end = [model.deactivatedAt ?? NEVER, ends.at(-1) ?? NEVER].sort()[0]!
    if (end <= today) return errors.modelNotFound(name, ` It was deactivated on ${end}.`)
    if (offered.length === 0) return errors.unsupported(`No provider offers the model "${name}".`, 'model')
    const paths = pathsOf(snapshot, model.operations?.filter(own => own !== op) ?? [])
    if (paths.length > 0) {
      const at = paths.join(' or ')
      return errors.unsupported(`The model "${name}" is not served on this endpoint; ask for it at ${at}.`, 'model')
    }
  }
  const instead = 'GET /v1/models says which operations each serves'
  return errors.unsupported(`The model "${name}" is not served on this endpoint. ${instead}.`, 'model')
}

/** The first path of each operation. */
const pathsOf = (snapshot: RoutingQuery['snapshot'], operations: readonly string[]): string[] =>
  operations.flatMap(
    name => snapshot.routes().find(({ endpoint }) => endpoint.operation?.name === name)?.endpoint.path ?? [],
  )

function byPriorityAndPrice(a: Mapping, b: Mapping): number {
  const price = (mapping: Mapping) =>
    mapping.price ? Number((mapping.price.rates.prompt ?? 0n) + (mapping.price.rates.completion ?? 0n)) : Infinity
  if (a.provider.priority !== b.provider.priority) return b.provider.priority - a.provider.priority
  const difference = price(a) - price(b)
  return Number.isNaN(difference) || difference === 0 ? (a.provider.id < b.provider.id ? -1 : 1) : difference
}

const isIn = (region: string | undefined, credential: Target['credential']): boolean =>
  region === undefined || !credential?.regions || credential.regions.includes(region)

const standingTargets = perObject((_: Credentials) => perObject((_: Mapping) => new Map<Op, readonly Target[]>()))

/** One target for each region and credential. */
function targets(mapping: Mapping, op: Op, credentials: Credentials): readonly Target[] {
  const byOp = standingTargets(credentials)(mapping)
  let known = byOp.get(op)
  if (!known) {
    const { provider, price } = mapping
    const translator = mapping.wires.get(op)!
    known = candidatesOf(mapping).flatMap(({ region, baseUrl }) =>
      credentials
        .filter(credential => isFor(mapping, credential) && isIn(region, credential))
        .map(credential => ({
          mapping,
          provider,
          credential,
          translator,
          price,
          ...(region !== undefined && { region, baseUrl }),
        })),
    )
    byOp.set(op, known)
  }
  return known
}
