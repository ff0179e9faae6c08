/** Resolves virtual models to the names of their targets (docs/virtual-models.md). */
import { createHash } from 'node:crypto'
import type { Catalog, TargetCondition, VirtualModel, VirtualTarget } from '../core/catalog.ts'
import { errors } from '../lib/error.ts'
import type { RoutingQuery } from './query.ts'

type Facts = Pick<RoutingQuery, 'catalog' | 'principal' | 'promptTokens' | 'session' | 'tenant'>

/** The virtual model of a name, if it is one. */
export const virtualOf = ({ virtual }: Catalog, name: string): VirtualModel | undefined => virtual?.get(name)

/** Names of models in the order in which they are tried, each once. Throws a 400 when no condition is met. */
export function targetsOf(model: VirtualModel, query: Facts, random: () => number): readonly string[] {
  const names = [...new Set(expanded(model, query, random))]
  if (names.length > 0) return names
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

function expanded(model: VirtualModel, query: Facts, random: () => number): string[] {
  const able = model.use.filter(({ when }) => !when || isMet(when, query))
  const ordered = model.strategy === 'weight' ? leadByWeight(able, drawOf(model, query, random)) : able
  return ordered.flatMap(target => {
    const nested = virtualOf(query.catalog, target.model)
    return nested ? expanded(nested, query, random) : [target.model]
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

function isMet({ orgs, projects, prompt_tokens: tokens }: TargetCondition, query: Facts): boolean {
  const { principal } = query
  if (orgs && !(principal && (orgs.includes(principal.orgId) || orgs.includes(principal.orgName)))) return false
  if (projects && !(principal && projects.includes(principal.projectId))) return false
  if (!tokens) return true
  const { min = 0, max = Number.POSITIVE_INFINITY } = tokens
  return query.promptTokens >= min && query.promptTokens <= max
}
