/** Which targets may serve a request, in the order in which they are tried. */
import type { Mapping, Model } from '../core/catalog.ts'
import { errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import { operationOf } from '../core/operation.ts'
import type { ChatRequest, Op, Ops } from '../core/ops.ts'
import type { Target } from '../core/translator.ts'
import { capable } from './requirements.ts'
import { resolve, type Wanted } from './resolve.ts'

const DAY_MS = 86_400_000
const NEVER = '9999-12-31'

export interface PlanOptions {
  /** What `auto` chooses from, best first. */
  readonly auto: readonly string[]
}

/** What choosing a target reads of a request, whatever it asks for; only chat has preferences. */
type Asked = Ops[Op] & Partial<Pick<ChatRequest, 'routing' | 'free_models_only' | 'no_reasoning'>>

/** At least one target. Sets what the exchange knows of the requested model. Throws the 4xx that says why not. */
export function plan(ex: Exchange, options: PlanOptions): Target[] {
  const request: Asked = ex.request!
  const { catalog } = ex.snapshot
  const wanted = resolve(catalog, request.model)
  const provider = wanted.kind === 'model' ? wanted.provider : undefined
  ex.requestedModel = wanted.kind === 'model' ? wanted.model.id : 'auto'
  ex.requestedProvider = provider?.id ?? null
  if (provider && request.routing && request.routing !== 'auto') {
    throw errors.combination('routing cannot be combined with a provider-prefixed model.', 'routing')
  }

  const op = ex.endpoint.op!
  const today = Math.floor(ex.at / DAY_MS)
  const asked = models(ex, request, wanted, options)
  const free = wanted.kind === 'auto' && request.free_models_only
  const offered = asked
    .flatMap(model => offers(model, op, today))
    .filter(mapping => (!provider || mapping.provider === provider) && (!free || isFree(mapping)))
  if (offered.length === 0) throw unserved(request.model, wanted, dateOf(today))

  const { mappings, unmet } = capable(offered, op, request)
  if (unmet) throw unmet
  const live = mappings.filter(isLive)
  if (live.length === 0) throw errors.noProvider(request.model, 'no provider of it has a credential.')
  const billable = live.filter(mapping => mapping.price !== undefined || mapping.unpriced === 'allow')
  if (billable.length === 0) throw errors.unpriced(live[0]!.model.id, live[0]!.provider.id)
  return billable.flatMap(mapping => targets(mapping, op))
}

export const isLive = (mapping: Mapping): boolean =>
  mapping.provider.auth.scheme === 'none' || mapping.provider.credentials.length > 0

/** Zero-priced, whatever is counted. */
const isFree = ({ price, pricing }: Mapping): boolean =>
  price !== undefined && Object.values(pricing).every(usd => usd === '0')

function models(ex: Exchange, request: Asked, wanted: Wanted, options: PlanOptions): Model[] {
  if (wanted.kind === 'model') return [wanted.model]
  const chosen = options.auto.flatMap(id => ex.snapshot.catalog.models.get(id) ?? [])
  const left = chosen
    .filter(model => !request.no_reasoning || !model.mappings.some(mapping => mapping.supports.has('reasoning')))
    .filter(model => model.mappings.some(mapping => isLive(mapping) && (!request.free_models_only || isFree(mapping))))
  if (left.length === 0)
    throw errors.noProvider('auto', 'no model that "auto" may choose is live and fits the request.')
  return left
}

/** What a model's mappings offer on one day; the catalogue itself never changes. */
const standing = new WeakMap<Model, Map<Op, { readonly day: number; readonly mappings: readonly Mapping[] }>>()

/** The mappings of a model that speak this operation on that day, in the order in which they are tried. */
function offers(model: Model, op: Op, day: number): readonly Mapping[] {
  let byOp = standing.get(model)
  if (!byOp) {
    byOp = new Map()
    standing.set(model, byOp)
  }
  let known = byOp.get(op)
  if (known?.day !== day) {
    known = { day, mappings: offersOn(model, op, dateOf(day)) }
    byOp.set(op, known)
  }
  return known.mappings
}

function offersOn(model: Model, op: Op, date: string): Mapping[] {
  if (!operationOf(op).servedBy(model)) return []
  if (model.deactivatedAt && model.deactivatedAt <= date) return []
  return model.mappings
    .filter(mapping => mapping.wires.has(op) && mapping.provider.priority > 0)
    .filter(mapping => !mapping.deactivatedAt || mapping.deactivatedAt > date)
    .sort(byPriorityAndPrice)
}

const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

function unserved(name: string, wanted: Wanted, today: string) {
  if (wanted.kind === 'model') {
    const { model, provider } = wanted
    const offered = model.mappings.filter(mapping => !provider || mapping.provider === provider)
    const ends = offered.map(mapping => mapping.deactivatedAt ?? NEVER).sort()
    const end = [model.deactivatedAt ?? NEVER, ends.at(-1) ?? NEVER].sort()[0]!
    if (end <= today) return errors.modelNotFound(name, ` It was deactivated on ${end}.`)
  }
  return errors.unsupported(`The model "${name}" is not served on this endpoint.`, 'model')
}

function byPriorityAndPrice(a: Mapping, b: Mapping): number {
  const price = (mapping: Mapping) =>
    mapping.price ? Number((mapping.price.rates.prompt ?? 0n) + (mapping.price.rates.completion ?? 0n)) : Infinity
  if (a.provider.priority !== b.provider.priority) return b.provider.priority - a.provider.priority
  const difference = price(a) - price(b)
  return Number.isNaN(difference) || difference === 0 ? (a.provider.id < b.provider.id ? -1 : 1) : difference
}

const standingTargets = new WeakMap<Mapping, Map<Op, readonly Target[]>>()

/** One target for each credential of the gateway. */
function targets(mapping: Mapping, op: Op): readonly Target[] {
  let byOp = standingTargets.get(mapping)
  if (!byOp) {
    byOp = new Map()
    standingTargets.set(mapping, byOp)
  }
  let known = byOp.get(op)
  if (!known) {
    const { provider, price } = mapping
    const translator = mapping.wires.get(op)!
    const credentials = provider.auth.scheme === 'none' ? [undefined] : provider.credentials
    known = credentials.map(credential => ({ mapping, provider, credential, translator, price }))
    byOp.set(op, known)
  }
  return known
}
