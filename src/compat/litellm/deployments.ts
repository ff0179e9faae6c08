/** The models of a key as LiteLLM lists them: a name, and each deployment behind it. */
import type { Exchange } from '../../core/exchange.ts'
import type { Mapping, Model } from '../../core/translator.ts'
import { nameOf } from '../../endpoints/model-entry.ts'
import { listedIn, noFlags, shownMappings, today, viewOf, virtualIn } from '../../endpoints/model-view.ts'
import { shownTargets } from '../../endpoints/virtual-entry.ts'
import { resolve } from '../../routing/resolve.ts'

/** An offer under a name for requests. */
export interface Deployment {
  readonly name: string
  readonly mapping: Mapping
}

/** Every offer that the caller may use, under its model's name, its aliases, and the names of virtual models. */
export function deploymentsOf(ex: Exchange): Deployment[] {
  const view = viewOf(ex, noFlags)
  const day = today(ex.at)
  const { catalog } = view
  const offers = (names: readonly string[], mappings: readonly Mapping[]): Deployment[] =>
    names.flatMap(name => mappings.map(mapping => ({ name, mapping })))
  const named = (model: Model): string[] => {
    const means = (name: string) => {
      const meant = resolve(catalog, name)
      return meant.kind === 'model' && meant.model === model
    }
    return [nameOf(model), ...model.aliases.filter(means)]
  }
  return [
    ...virtualIn(view).flatMap(virtual =>
      offers(
        [virtual.id],
        shownTargets(virtual, view, noFlags, day).flatMap(({ mappings }) => mappings),
      ),
    ),
    ...listedIn(view).flatMap(model => offers(named(model), shownMappings(model, view, noFlags, day))),
  ]
}
