/** What of the catalogue a caller is shown. */
import type { Catalog, Mapping, Model } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import { isCallable } from '../routing/plan.ts'

export const flags = [
  'include_restricted',
  'include_deactivated',
  'exclude_deprecated',
  'no_training',
  'mapped',
] as const
export type Flags = Record<(typeof flags)[number], boolean>

/** The flags of a query. */
export const wantedOf = (query: URLSearchParams): Flags =>
  Object.fromEntries(flags.map(flag => [flag, isOn(query.get(flag))])) as Flags

/** All are strings; present and not plainly negative means on. */
const isOn = (text: string | null) => text !== null && text !== 'false' && text !== '0'
export const today = (at: number) => new Date(at).toISOString().slice(0, 10)

/** What a listing shows, and to whom. */
export interface View {
  readonly catalog: Catalog
  /** All who see the same hold one object here and, for one object, one name. */
  readonly seer: object
  readonly name: string
  shows(mapping: Mapping): boolean
}

/** Those who are denied nothing, and call with the operator's credentials alone. */
const everybody = {}

/** With a key: what that key could call now. Without one, or where all is wanted: the public catalogue. */
export function viewOf(ex: Exchange, { include_restricted: all }: Flags): View {
  const { access, policy, principal, catalog, snapshot } = ex
  if (all || !access || !policy || !principal) {
    return { catalog: snapshot.catalog, seer: everybody, name: 'public', shows: () => true }
  }
  const { mode } = principal
  const isShared = mode === 'credits' && catalog === snapshot.catalog
  return {
    catalog,
    // Rules are those of one policy, and a policy has other keys when it is another object.
    seer: access.restricted ? access : isShared ? everybody : policy,
    name: mode,
    shows: mapping => access.denial(mapping) === undefined && isCallable(ex, mapping),
  }
}

type Dated = { deactivatedAt: string | undefined; deprecatedAt: string | undefined }

/** The mappings of a model that are shown; none for one that is not. */
export function shownMappings(model: Model, view: View, wanted: Flags, day: string): readonly Mapping[] {
  const isShown = (at: Dated) =>
    (wanted.include_deactivated || !at.deactivatedAt || at.deactivatedAt > day) &&
    (!wanted.exclude_deprecated || !at.deprecatedAt || at.deprecatedAt > day)
  if (!isShown(model)) return []
  return model.mappings
    .filter(mapping => isShown(mapping) && view.shows(mapping))
    .filter(mapping => !wanted.no_training || mapping.provider.dataPolicy.trainsOnData === false)
}
