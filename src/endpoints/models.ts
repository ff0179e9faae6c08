/** `GET /v1/models`: the catalogue (docs/contract.md#catalogue), or its form on another client wire. */

import { modelForms, pageOf } from '../codecs/model-forms.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { offerOf } from '../core/offer.ts'
import type { Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import type { Model } from '../core/translator.ts'
import type { ListedModel } from '../mcp/tool.ts'
import { jsonReply } from './leased-pieces.ts'
import { listing } from './listings.ts'
import { entryOf, nameOf } from './model-entry.ts'
import {
  type Flags,
  flags,
  listedIn,
  noFlags,
  shownMappings,
  today,
  type View,
  viewOf,
  virtualIn,
  wantedOf,
} from './model-view.ts'
import { virtualEntry, virtualListed } from './virtual-entry.ts'

/** The form is that of the client's wire: OpenAI, Anthropic or Google. */
export const models: Endpoint = {
  name: 'models',
  method: 'GET',
  path: '/v1/models',
  chain: 'local',
  codec: modelForms,
  bodyLimit: 0,
  async serve(ex, services) {
    const reply = await listingReply(ex, services)
    reply.headers.push('vary', 'authorization, x-api-key, x-goog-api-key, anthropic-version')
    if (ex.caller.principal) reply.headers.push('cache-control', 'private')
    return reply
  },
}

/** Lists the catalogue as the query requests, in the form of the client's wire. */
export async function listingReply(ex: Exchange, services: Services): Promise<Reply> {
  const query = new URLSearchParams(ex.http.query)
  const wanted = wantedOf(query)
  const day = today(ex.at)
  const listed = await list(viewOf(ex, wanted), wanted, day)
  const page = pageOf(ex, listed, query, day)
  const bytes = page ? Buffer.from(JSON.stringify(page)) : listed
  return jsonReply(bytes, ex, services)
}

/** The listing of a view with some of the flags, as JSON. */
function list(view: View, wanted: Flags, day: string): Buffer | Promise<Buffer> {
  const kind = flags.filter(flag => wanted[flag]).join()
  return listing(view, kind, day, () => ({
    object: 'list',
    data: [
      ...entries(view, wanted, day).map(({ model, id, mappings, stability }) =>
        entryOf(model, id, mappings, stability),
      ),
      ...(wanted.mapped ? [] : virtualEntries(view, wanted, day)),
    ],
  }))
}

const virtualEntries = (view: View, wanted: Flags, day: string) =>
  virtualIn(view).flatMap(one => virtualEntry(one, view, wanted, day) ?? [])

/** The caller's view of the catalogue, with some flags set. */
export function listedModels(ex: Exchange, wanted: Partial<Flags>): ListedModel[] {
  const all = { ...noFlags, ...wanted }
  const [view, day] = [viewOf(ex, all), today(ex.at)]
  const virtual = virtualIn(view).flatMap(one => virtualListed(one, view, all, day) ?? [])
  return [...shownModels(view, all, day), ...virtual]
}

function shownModels(view: View, wanted: Flags, day: string): ListedModel[] {
  return listedIn(view).flatMap(model => {
    const mappings = shownMappings(model, view, wanted, day)
    return mappings.length > 0 ? { id: nameOf(model), model, mappings } : []
  })
}

/** Returns the entries of a listing: a model with its offers, or each offer. */
function entries(view: View, wanted: Flags, day: string): (ListedModel & Pick<Model, 'stability'>)[] {
  return shownModels(view, wanted, day).flatMap(({ id, model, mappings }) =>
    wanted.mapped
      ? mappings
          .map(one => ({ id: offerOf(one), model, mappings: [one], stability: one.stability ?? model.stability }))
          .filter(({ id }) => !view.denies(id))
      : { id, model, mappings, stability: model.stability },
  )
}
