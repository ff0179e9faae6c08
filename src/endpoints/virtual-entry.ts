/** The entry of a virtual model: what all of its targets can. */
import type { CatalogEntry } from '../codecs/catalog-entry.ts'
import type { VirtualModel } from '../core/catalog.ts'
import { resolve } from '../routing/resolve.ts'
import { allTargetsOf } from '../routing/virtual-models.ts'
import { entryOf, nameOf } from './model-entry.ts'
import { type Flags, shownMappings, type View } from './model-view.ts'

/** Undefined where the caller may see none of its targets. */
export function virtualEntry(virtual: VirtualModel, view: View, wanted: Flags, day: string): CatalogEntry | undefined {
  const entries = allTargetsOf(virtual, view.catalog).flatMap(name => {
    const meant = resolve(view.catalog, name)
    if (meant.kind !== 'model') return []
    const { model, provider } = meant
    const mappings = shownMappings(model, view, wanted, day).filter(one => !provider || one.provider === provider)
    return mappings.length > 0 ? [entryOf(model, nameOf(model), mappings, model.stability)] : []
  })
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
