/** The part of the catalogue that a caller may see. */

import type { Catalog, VirtualModel } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import { foundOffers } from '../core/offer.ts'
import { catalogOf } from '../core/policy.ts'
import type { Mapping, Model } from '../core/translator.ts'
import { isCallable } from '../routing/plan.ts'
import { admits } from '../routing/policy.ts'
import { ruleFor } from '../routing/rules.ts'
import { nameOf } from './model-entry.ts'

/** Query parameters of a listing, all off by default (docs/contract.md#catalogue). */
export const flags = [
  'include_restricted',
  'include_deactivated',
  'exclude_deprecated',
  'no_training',
  'mapped',
] as const
/** Which of the flags are on. */
export type Flags = Record<(typeof flags)[number], boolean>

/** No flag is on. */
export const noFlags = Object.fromEntries(flags.map(flag => [flag, false])) as Flags

/** Flags of a query. */
export const wantedOf = (query: URLSearchParams): Flags =>
  Object.fromEntries(flags.map(flag => [flag, isOn(query.get(flag))])) as Flags

/** A present flag is on unless it is `false` or `0`. */
const isOn = (text: string | null) => text !== null && text !== 'false' && text !== '0'
/** `YYYY-MM-DD` in UTC; `at` is Unix milliseconds. */
export const today = (at: number) => new Date(at).toISOString().slice(0, 10)

/** The contents and the audience of a listing. */
export interface View {
  readonly catalog: Catalog
  /** Callers with the same view share one object. */
  readonly audience: object
  readonly name: string
  /** Tenant whose turns of the loop a listing takes; '' when callers of several organizations share it. */
  readonly tenant: string
  shows(mapping: Mapping): boolean
  /** Whether a rule refuses the caller's requests for this name. */
  denies(name: string): boolean
}

/** Callers without restrictions who use only the operator's credentials. */
const unrestricted = {}

/** With a key: what the key could call now. Without one, or with `include_restricted`: the public catalogue. */
export function viewOf(ex: Exchange, { include_restricted: all }: Flags): View {
  const { snapshot } = ex
  const { access, policy, principal } = ex.caller
  const catalog = catalogOf(ex)
  const limited = [...catalog.providers.values()].flatMap(one =>
    one.organizations && admits(one, principal) ? one.id : [],
  )
  if (all || !access || !policy || !principal) {
    const shows = ({ provider }: Mapping) => admits(provider, principal)
    const name = ['public', ...limited].join(' ')
    return { catalog: snapshot.catalog, audience: unrestricted, name, tenant: '', shows, denies: () => false }
  }
  const { mode, orgName, projectId, keyId, keyName } = principal
  const hasDenials = catalog.rules?.some(({ deny }) => deny !== undefined) === true
  const isShared = !access.restricted && mode === 'credits' && catalog === snapshot.catalog && !hasDenials
  return {
    catalog,
    // Accesses belong to one policy object; changed keys come with a new one.
    audience: access.restricted ? access : isShared ? unrestricted : policy,
    name: [mode, ...(hasDenials ? [orgName, projectId, keyId, keyName] : []), ...limited].join(' '),
    tenant: isShared ? '' : ex.caller.tenant,
    shows: mapping => access.issue(mapping) === undefined && isCallable(ex.caller, mapping),
    denies: name => hasDenials && ruleFor(name, { catalog, principal })?.deny !== undefined,
  }
}

/** Models of a listing: neither hidden nor denied. */
export const listedIn = ({ catalog, denies }: View): readonly Model[] =>
  [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)].filter(
    model => !model.hidden && !denies(nameOf(model)),
  )

/** Virtual models of a listing: neither hidden nor denied. */
export const virtualIn = ({ catalog, denies }: View): readonly VirtualModel[] =>
  [...(catalog.virtual?.values() ?? [])].filter(({ id, hidden }) => !hidden && !denies(id))

type Dated = { deactivatedAt: string | undefined; deprecatedAt: string | undefined }

/** Visible mappings of a model; none for an invisible model. */
export function shownMappings(model: Model, view: View, wanted: Flags, day: string): readonly Mapping[] {
  const isShown = (at: Dated) =>
    (wanted.include_deactivated || !at.deactivatedAt || at.deactivatedAt > day) &&
    (!wanted.exclude_deprecated || !at.deprecatedAt || at.deprecatedAt > day)
  if (!isShown(model)) return []
  return model.mappings
    .filter(mapping => isShown(mapping) && view.shows(mapping))
    .filter(mapping => !wanted.no_training || mapping.provider.dataPolicy.trainsOnData === false)
}
