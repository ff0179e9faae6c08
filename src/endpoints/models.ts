/** `GET /v1/models`: the catalogue (docs/contract.md#catalogue), or its form on another client wire. */
import { modelForms, pageOf } from '../codecs/model-forms.ts'
import type { Mapping, Model } from '../core/catalog.ts'
import { type Endpoint, value, written } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { foundOffers, offerOf } from '../core/offer.ts'
import { listing } from './listings.ts'
import { entryOf, nameOf } from './model-entry.ts'
import { type Flags, flags, noFlags, shownMappings, today, type View, viewOf, wantedOf } from './model-view.ts'

/** The form is that of the client's wire: OpenAI, Anthropic or Google. */
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
    const listed = list(viewOf(ex, wanted), wanted, today(ex.at))
    const page = pageOf(ex, listed, query, today(ex.at))
    const reply = page ? value(page) : written(listed)
    reply.headers.push('vary', 'authorization, x-api-key, x-goog-api-key, anthropic-version')
    if (ex.principal) reply.headers.push('cache-control', 'private')
    return reply
  },
}

/** The listing of a view with some of the flags, as JSON. */
export const list = (view: View, wanted: Flags, day: string): Buffer =>
  listing(view, flags.filter(flag => wanted[flag]).join(), day, () => ({
    object: 'list',
    data: entries(view, wanted, day),
  }))

/** A model under its name for requests, with its visible offers. */
interface Listed {
  readonly id: string
  readonly model: Model
  readonly mappings: readonly Mapping[]
}

/** The caller's view of the catalogue, with some flags set. */
export function listedModels(ex: Exchange, wanted: Partial<Flags>): Listed[] {
  const all = { ...noFlags, ...wanted }
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
