/** Entries of virtual models: what all of their targets can. */
import type { CatalogEntry } from '../codecs/catalog-entry.ts'
import type { VirtualModel } from '../core/catalog.ts'
import { isFree } from '../core/offer.ts'
import type { Mapping, Model } from '../core/translator.ts'
import { resolveAny } from '../routing/resolve.ts'
import { allTargetsOf } from '../routing/virtual-models.ts'
import { entryOf, nameOf } from './model-entry.ts'
import { type Flags, shownMappings, type View } from './model-view.ts'

/** A target with its visible offers; at least one. */
interface Shown {
  readonly model: Model
  readonly mappings: readonly Mapping[]
}

/** The targets that the caller may see. */
export const shownTargets = (virtual: VirtualModel, view: View, wanted: Flags, day: string): readonly Shown[] =>
  resolveAny(view.catalog, allTargetsOf(virtual, view.catalog)).flatMap(meant => {
    if (meant.kind !== 'model') return []
    const { model, provider } = meant
    const mappings = shownMappings(model, view, wanted, day).filter(one => !provider || one.provider === provider)
    return mappings.length > 0 ? [{ model, mappings }] : []
  })

/** A virtual model in the form of a model, whose offers can what all of its targets can. Undefined as for `virtualEntry`. */
export function virtualListed(virtual: VirtualModel, view: View, wanted: Flags, day: string) {
  const targets = shownTargets(virtual, view, wanted, day)
  const [first] = targets
  if (!first) return undefined
  const supports = new Set(
    shared(targets.map(({ mappings }) => [...new Set(mappings.flatMap(one => [...one.supports]))])),
  )
  const contextLength = smallest(targets.map(({ model, mappings }) => longest(model, mappings, 'contextLength')))
  const maxOutput = smallest(targets.map(({ model, mappings }) => longest(model, mappings, 'maxOutput')))
  const { id, name } = virtual
  const output = shared(targets.map(({ model }) => model.output))
  return {
    id,
    model: Object.assign({}, first.model, { id, name, description: undefined, aliases: [], output }),
    mappings: targets.flatMap(({ mappings }) =>
      mappings.map(one => Object.assign({}, one, { supports, contextLength, maxOutput })),
    ),
    free: targets.every(({ mappings }) => mappings.some(isFree)),
  }
}

const longest = (model: Model, mappings: readonly Mapping[], of: 'contextLength' | 'maxOutput'): number | undefined =>
  Math.max(0, ...mappings.map(one => one[of] ?? model[of] ?? 0)) || undefined

/** Undefined where the caller may see none of its targets. */
export function virtualEntry(virtual: VirtualModel, view: View, wanted: Flags, day: string): CatalogEntry | undefined {
  const entries = shownTargets(virtual, view, wanted, day).map(({ model, mappings }) =>
    entryOf(model, nameOf(model), mappings, model.stability),
  )
  const [first] = entries
  if (!first) return undefined
  return Object.assign({}, first, {
    id: virtual.id,
    name: virtual.name,
    display_name: virtual.name,
    description: '',
    aliases: [],
    architecture: {
      ...first.architecture,
      input_modalities: shared(entries.map(({ architecture }) => architecture.input_modalities)),
      output_modalities: shared(entries.map(({ architecture }) => architecture.output_modalities)),
    },
    operations: shared(entries.map(({ operations }) => operations)),
    providers: entries.flatMap(({ providers }) => providers),
    context_length: smallest(entries.map(({ context_length }) => context_length)),
    max_output: smallest(entries.map(({ max_output }) => max_output)),
    supported_parameters: shared(entries.map(({ supported_parameters }) => supported_parameters)),
    json_output: entries.every(({ json_output }) => json_output),
    structured_outputs: entries.every(({ structured_outputs }) => structured_outputs),
    free: entries.every(({ free }) => free),
  })
}

const shared = <T>([first = [], ...others]: readonly (readonly T[])[]): readonly T[] =>
  first.filter(one => others.every(list => list.includes(one)))

const smallest = (numbers: readonly (number | undefined)[]): number | undefined => {
  const known = numbers.filter(one => one !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
