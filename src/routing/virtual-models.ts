/** Resolves virtual models to the names of their targets (docs/virtual-models.md). */
import { createHash } from 'node:crypto'
import type { Catalog, Preset, TargetCondition, VirtualModel, VirtualTarget } from '../core/catalog.ts'
import { errors } from '../lib/error.ts'
import { isFrom } from './conditions.ts'
import { combined } from './presets.ts'
import type { RoutingQuery } from './query.ts'

type Facts = Pick<
  RoutingQuery,
  'operation' | 'catalog' | 'asker' | 'principal' | 'tags' | 'promptTokens' | 'session' | 'tenant'
>

/** The virtual model of a name, if it is one. */
export const virtualOf = ({ virtual }: Catalog, name: string): VirtualModel | undefined => virtual?.get(name)

/** A model that a virtual model stands for, and the preset of its requests. */
interface Meant {
  readonly name: string
  readonly preset: Preset | undefined
  /** The outermost virtual model that puts it in an order of prices or latencies. */
  readonly sorted: VirtualModel | undefined
}

/** Models in the order in which they are tried, each once. Throws a 400 when no condition is met. */
export function targetsOf(model: VirtualModel, query: Facts, random: () => number): readonly Meant[] {
  const meant = new Map<string, Meant>()
  for (const one of expanded(model, query, {}, random)) if (!meant.has(one.name)) meant.set(one.name, one)
  if (meant.size > 0) return [...meant.values()]
  throw errors.unsupported(`No target of the model "${model.id}" is meant for this request.`, 'model')
}

/** Names of all targets, whatever their conditions. */
export const allTargetsOf = (model: VirtualModel, catalog: Catalog): readonly string[] => [
  ...new Set(
    model.use.flatMap(target => {
      const nested = virtualOf(catalog, target.model)
      return nested ? allTargetsOf(nested, catalog) : [target.model]
    }),
  ),
]

/** `outer`: of the virtual models around this one. */
function expanded(
  model: VirtualModel,
  query: Facts,
  outer: Partial<Pick<Meant, 'preset' | 'sorted'>>,
  random: () => number,
): Meant[] {
  const preset = combined(outer.preset, model.presets?.get(query.operation.name))
  const sorts = model.strategy === 'price' || model.strategy === 'latency'
  const sorted = outer.sorted ?? (sorts ? model : undefined)
  const able = model.use.filter(({ when }) => !when || isMet(when, query))
  const ordered = model.strategy === 'weight' ? leadByWeight(able, drawOf(model, query, random)) : able
  return ordered.flatMap(target => {
    const nested = virtualOf(query.catalog, target.model)
    return nested ? expanded(nested, query, { preset, sorted }, random) : [{ name: target.model, preset, sorted }]
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
