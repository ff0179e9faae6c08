/** Resolves virtual models to the names of their targets (docs/virtual-models.md). */
import { createHash } from 'node:crypto'
import type { Catalog, Preset, TargetCondition, VirtualModel, VirtualTarget } from '../core/catalog.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { isFrom } from './conditions.ts'
import { combined } from './presets.ts'
import type { RoutingQuery } from './query.ts'

type Facts = Pick<
  RoutingQuery,
  'operation' | 'catalog' | 'asker' | 'principal' | 'tags' | 'promptTokens' | 'session' | 'tenant'
>

/** The virtual model of a name, if it is one: that of this id, else the longest pattern that no other name goes before. */
export const virtualOf = (catalog: Catalog, name: string): VirtualModel | undefined =>
  catalog.virtual && (exactly(catalog, name) ?? patterned(catalog, catalog.virtual, name))

/** A pattern is no name. */
const exactly = ({ virtual }: Catalog, name: string): VirtualModel | undefined =>
  name.includes('*') ? undefined : virtual?.get(name)

interface Pattern {
  readonly model: VirtualModel
  readonly start: string
  readonly end: string
}

/** Ids with a `*`, the longest first. */
const patternsOf = perObject((virtual: ReadonlyMap<string, VirtualModel>): readonly Pattern[] =>
  [...virtual.values()]
    .filter(({ id }) => id.includes('*'))
    .sort((one, other) => other.id.length - one.id.length)
    .map(model => {
      const [start = '', end = ''] = model.id.split('*')
      return { model, start, end }
    }),
)

/** The virtual model of a name that fits a pattern: the rest of the name takes the place of `*` in its targets. */
function patterned(
  { models, aliases, pinned }: Catalog,
  virtual: ReadonlyMap<string, VirtualModel>,
  name: string,
): VirtualModel | undefined {
  const all = patternsOf(virtual)
  if (all.length === 0 || name === 'auto' || aliases.has(name) || pinned?.has(name)) return undefined
  const known = models.get(name)
  if (known && !known.hidden) return undefined
  const pattern = all.find(
    ({ start, end }) => name.length > start.length + end.length && name.startsWith(start) && name.endsWith(end),
  )
  if (!pattern) return undefined
  const { model, start, end } = pattern
  const rest = name.slice(start.length, name.length - end.length)
  const use = model.use.map(target => Object.assign({}, target, { model: target.model.replace('*', () => rest) }))
  return Object.assign({}, model, { id: name, name, use })
}

/** A model that a virtual model stands for, and the preset of its requests. */
interface Meant {
  readonly name: string
  readonly preset: Preset | undefined
  /** The outermost virtual model that puts it in an order of prices or latencies. */
  readonly sorted: VirtualModel | undefined
  /** Ids of the virtual models that lead to it, the outermost first. */
  readonly through: readonly string[]
}

/** Models in the order in which they are tried, each once; none where no condition is met. */
export function targetsOf(model: VirtualModel, query: Facts, random: () => number): readonly Meant[] {
  const meant = new Map<string, Meant>()
  for (const one of expanded(model, query, {}, random)) if (!meant.has(one.name)) meant.set(one.name, one)
  return [...meant.values()]
}

/** The 400 of a virtual model without such a target. */
export const noTarget = ({ id }: VirtualModel): GatewayError =>
  errors.unsupported(`No target of the model "${id}" is meant for this request.`, 'model')

/** Names of all targets, whatever their conditions. */
export const allTargetsOf = (model: VirtualModel, catalog: Catalog): readonly string[] => [
  ...new Set(
    model.use.flatMap(target => {
      const nested = exactly(catalog, target.model)
      return nested ? allTargetsOf(nested, catalog) : [target.model]
    }),
  ),
]

/** `outer`: of the virtual models around this one. */
function expanded(
  model: VirtualModel,
  query: Facts,
  outer: Partial<Pick<Meant, 'preset' | 'sorted' | 'through'>>,
  random: () => number,
): Meant[] {
  const preset = combined(outer.preset, model.presets?.get(query.operation.name))
  const sorts = model.strategy === 'price' || model.strategy === 'latency'
  const sorted = outer.sorted ?? (sorts ? model : undefined)
  const through = [...(outer.through ?? []), model.id]
  const able = model.use.filter(({ when }) => !when || isMet(when, query))
  const ordered = model.strategy === 'weight' ? leadByWeight(able, drawOf(model, query, random)) : able
  return ordered.flatMap(target => {
    const nested = exactly(query.catalog, target.model)
    return nested
      ? expanded(nested, query, { preset, sorted, through }, random)
      : [{ name: target.model, preset, sorted, through }]
  })
}

/** A number from 0 to below 1, the same for each request of a sticky session. */
const drawOf = ({ id, sticky }: VirtualModel, { session, tenant }: Facts, random: () => number): number =>
  sticky && session !== undefined
    ? createHash('sha256').update(`${tenant} ${id} ${session}`).digest().readUInt32BE() / 2 ** 32
    : random()

/** Puts the target that the draw selects first; the others keep their order. */
function leadByWeight(targets: readonly VirtualTarget[], draw: number): readonly VirtualTarget[] {
  let left = draw * targets.reduce((sum, { weight }) => sum + weight, 0)
  const first = targets.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  return first ? [first, ...targets.filter(one => one !== first)] : targets
}

function isMet(condition: TargetCondition, query: Facts): boolean {
  const { prompt_tokens: tokens } = condition
  if (!isFrom(condition, query)) return false
  if (!tokens) return true
  const { min = 0, max = Number.POSITIVE_INFINITY } = tokens
  return query.promptTokens >= min && query.promptTokens <= max
}
