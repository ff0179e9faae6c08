/** `GET /v1/models`: the catalogue (docs/contract.md#catalogue), or its form on another client wire. */
import { modelForms, pageOf } from '../codecs/model-forms.ts'
import type { Catalog, Mapping, Model } from '../core/catalog.ts'
import { type Endpoint, value, written } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { foundOffers, offerOf } from '../core/offer.ts'
import { entryOf, nameOf } from './model-entry.ts'
import { type Flags, flags, shownMappings, today, type View, viewOf, wantedOf } from './model-view.ts'

const none = Object.fromEntries(flags.map(flag => [flag, false])) as Flags

export const models: Endpoint = {
  name: 'models',
  method: 'GET',
  path: '/v1/models',
  chain: 'local',
  codec: modelForms,
  bodyLimit: 0,
  async serve(ex) {
    const query = new URLSearchParams(ex.query)
    const wanted = wantedOf(query)
    const listing = list(viewOf(ex, wanted), wanted, today(ex.at))
    const page = pageOf(ex, listing, query, today(ex.at))
    const reply = page ? value(page) : written(listing)
    reply.headers.push('vary', 'authorization, x-api-key, x-goog-api-key, anthropic-version')
    if (ex.principal) reply.headers.push('cache-control', 'private')
    return reply
  },
}

const listings = new WeakMap<object, WeakMap<Catalog, Listings>>()

/** Listings of one day and one set of discovered models, by view and flags. */
interface Listings {
  readonly day: string
  readonly found: readonly (readonly Mapping[])[]
  readonly made: Map<string, Buffer>
}

/**
 * Each listing is built once as JSON per view, catalogue, day and flags, since any caller may request it at any rate.
 * Listings of
 * earlier days are dropped.
 */
export function list(view: View, wanted: Flags, day: string): Buffer {
  const { catalog, seer, name } = view
  let byCatalog = listings.get(seer)
  if (!byCatalog) {
    byCatalog = new WeakMap()
    listings.set(seer, byCatalog)
  }
  const found = [...(catalog.open?.values() ?? [])].map(({ listed }) => listed)
  let known = byCatalog.get(catalog)
  if (known?.day !== day || found.some((listed, at) => listed !== known!.found[at])) {
    known = { day, found, made: new Map() }
    byCatalog.set(catalog, known)
  }
  const key = [name, ...flags.filter(flag => wanted[flag])].join()
  let listing = known.made.get(key)
  if (!listing) {
    listing = Buffer.from(JSON.stringify({ object: 'list', data: entries(view, wanted, day) }))
    known.made.set(key, listing)
  }
  return listing
}

/** A model under its name for requests, with its visible offers. */
interface Listed {
  readonly id: string
  readonly model: Model
  readonly mappings: readonly Mapping[]
}

/** The caller's view of the catalogue, with some flags set. */
export function listedModels(ex: Exchange, wanted: Partial<Flags>): Listed[] {
  const all = { ...none, ...wanted }
  return shownModels(viewOf(ex, all), all, today(ex.at))
}

function shownModels(view: View, wanted: Flags, day: string): Listed[] {
  const all: Listed[] = []
  const { catalog } = view
  for (const model of [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)]) {
    const mappings = shownMappings(model, view, wanted, day)
    if (mappings.length > 0) all.push({ id: nameOf(model), model, mappings })
  }
  return all
}

function entries(view: View, wanted: Flags, day: string): object[] {
  return shownModels(view, wanted, day).flatMap(({ id, model, mappings }) =>
    wanted.mapped
      ? mappings.map(mapping => entryOf(model, offerOf(mapping), [mapping], mapping.stability ?? model.stability))
      : entryOf(model, id, mappings, model.stability),
  )
}
