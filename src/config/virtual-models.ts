/** Virtual models of the routes files. */
import { basename } from 'node:path'
import type { Catalog, RouteRule, VirtualModel } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Model } from '../core/translator.ts'
import { unknownName } from '../lib/nearest.ts'
import { offerIssue, RESERVED } from './aliases.ts'
import type { ConfigFile } from './file.ts'
import { linkPresets } from './presets.ts'
import type { RoutesFile } from './schemas/routes.ts'
import type { Path, Source } from './source.ts'

interface Written {
  readonly written: RoutesFile['virtual_models'][number]
  readonly model: VirtualModel
  readonly source: Source
  readonly path: Path
}

/** Undefined without any. Throws a ConfigError for a name that is taken, an unknown target and a circle. */
export function linkVirtual(
  files: readonly ConfigFile<RoutesFile>[],
  catalog: Catalog,
  endpoints: readonly Endpoint[],
): ReadonlyMap<string, VirtualModel> | undefined {
  const all = new Map<string, Written>()
  for (const { source, value } of files) {
    for (const [index, written] of value.virtual_models.entries()) {
      const { id, name = id, hidden, strategy, use, sticky, cache } = written
      const path = ['virtual_models', index]
      const shown = catalog.models.get(id)
      const isModel = (shown && !shown.hidden) || catalog.aliases.has(id) || catalog.pinned?.has(id)
      if (isModel) throw source.error(`"${id}" already names a model; choose another id`, [...path, 'id'])
      if (RESERVED.includes(id)) throw source.error(`"${id}" is reserved; choose another id`, [...path, 'id'])
      if (id.split('*').length > 2) throw source.error('expected one "*" at most', [...path, 'id'])
      if (all.has(id)) throw source.error(`the virtual model "${id}" is defined twice; keep one`, [...path, 'id'])
      const targets = use.map(one => {
        const { model, weight = 1, when } = typeof one === 'string' ? { model: one } : one
        return { model, weight, when }
      })
      const model = {
        id,
        name,
        ...((hidden || id.includes('*')) && { hidden: true }),
        strategy,
        ...(cache !== undefined && { cacheMs: cache === 'off' ? 0 : cache }),
        sticky: sticky === 'session',
        use: targets,
      }
      all.set(id, { model, written, source, path })
    }
  }
  for (const { model, source, path } of all.values()) {
    for (const [index, target] of model.use.entries()) {
      const issue = isVirtual(target.model, all) ? undefined : issueOf(example(target.model), catalog, all.keys())
      if (issue !== undefined) throw source.error(issue, [...path, 'use', index])
      const { min = 1, max = min } = target.when?.prompt_tokens ?? {}
      if (min > max)
        throw source.error('expected no less than "min"', [...path, 'use', index, 'when', 'prompt_tokens', 'max'])
    }
  }
  const whole = new Set<string>()
  for (const id of all.keys()) refuseCircle(id, all, [], whole)
  if (all.size === 0) return undefined
  const models = new Map([...all].map(([id, { model }]) => [id, model]))
  for (const [id, { model, written, source, path }] of all) {
    const presets = linkPresets(written, operationsOf(model, models, catalog), endpoints, source, path)
    if (presets) models.set(id, { ...model, presets })
  }
  return models
}

/** A target with `*` is none: the name that takes its place may be. */
const isVirtual = (target: string, all: ReadonlyMap<string, unknown>): boolean =>
  !target.includes('*') && all.has(target)

/** A name that a target with `*` may come to. */
const example = (target: string): string => target.replace('*', 'any')

/** Operations of all targets. */
function operationsOf(model: VirtualModel, all: ReadonlyMap<string, VirtualModel>, catalog: Catalog): Set<string> {
  const found = new Set<string>()
  for (const { model: target } of model.use) {
    const nested = isVirtual(target, all) ? all.get(target) : undefined
    const operations = nested
      ? operationsOf(nested, all, catalog)
      : (modelOf(example(target), catalog)?.operations ?? ['chat'])
    for (const operation of operations) found.add(operation)
  }
  return found
}

/** The model of a target that exists. */
function modelOf(target: string, { models, aliases, pinned, open }: Catalog): Model | undefined {
  const name = pinned?.get(target) ?? target
  const known = (id: string) => models.get(id) ?? aliases.get(id)
  const slash = name.indexOf('/')
  const rest = name.slice(slash + 1)
  return known(name) ?? known(rest) ?? open?.get(name.slice(0, slash))?.find(rest)?.model
}

/** Undefined without any. Throws a ConfigError for a rule of another form, or to an unknown model. */
export function linkRules(
  files: readonly ConfigFile<RoutesFile>[],
  catalog: Catalog,
): readonly RouteRule[] | undefined {
  const rules = files.flatMap(({ source, value }) =>
    value.rules.map(({ match, use, deny, mirror }, index): RouteRule => {
      const path = ['rules', index]
      const moves = use !== undefined || mirror !== undefined
      const isOne = moves === (deny === undefined)
      if (!isOne) throw source.error('write one of "use", "deny" and "mirror", or "use" beside "mirror"', path)
      const issue = modelIssue(use, catalog)
      if (issue !== undefined) throw source.error(issue, [...path, 'use'])
      const other = modelIssue(mirror?.to, catalog)
      if (other !== undefined) throw source.error(other, [...path, 'mirror', 'to'])
      return { name: `${basename(source.name)}#${index + 1}`, match, use, deny, mirror }
    }),
  )
  return rules.length === 0 ? undefined : rules
}

/** Says what is wrong with the name of a model or virtual model; undefined where nothing is. */
export function modelIssue(name: string | undefined, catalog: Catalog): string | undefined {
  const { virtual = new Map<string, VirtualModel>() } = catalog
  return name === undefined || virtual.has(name) ? undefined : issueOf(name, catalog, virtual.keys())
}

function issueOf(target: string, catalog: Catalog, virtual: Iterable<string>): string | undefined {
  const { models, aliases, pinned = new Map<string, string>() } = catalog
  if (models.has(target) || aliases.has(target) || pinned.has(target)) return undefined
  if (target.includes('/')) return offerIssue(target, catalog)
  return unknownName('model', target, [...models.keys(), ...aliases.keys(), ...pinned.keys(), ...virtual])
}

/** `above`: the ids that lead to `id`; `whole`: ids below which there is no circle. */
function refuseCircle(
  id: string,
  all: ReadonlyMap<string, Written>,
  above: readonly string[],
  whole: Set<string>,
): void {
  if (whole.has(id)) return
  const { model, source, path } = all.get(id)!
  const way = [...above, id]
  for (const [index, target] of model.use.entries()) {
    if (!isVirtual(target.model, all)) continue
    const start = way.indexOf(target.model)
    if (start >= 0) {
      const circle = [...way.slice(start), target.model].map(one => `"${one}"`).join(' uses ')
      throw source.error(`${circle}: remove one of these targets`, [...path, 'use', index])
    }
    refuseCircle(target.model, all, way, whole)
  }
  whole.add(id)
}
