/** `GET /v1/models/{id}`: one entry of the catalogue, by any name that requests may use. */

import type { CatalogEntry } from '../codecs/catalog-entry.ts'
import { entryIn, modelForms } from '../codecs/model-forms.ts'
import type { Catalog } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { offerOf } from '../core/offer.ts'
import { type Reply, value } from '../core/reply.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { type ModelReference, resolve } from '../routing/resolve.ts'
import { virtualOf } from '../routing/virtual-models.ts'
import { entryOf, nameOf } from './model-entry.ts'
import { type Flags, shownMappings, today, type View, viewOf, wantedOf } from './model-view.ts'
import { virtualEntry } from './virtual-entry.ts'

/** A name without a visible model is a 404. */
export const model: Endpoint = {
  name: 'models',
  method: 'GET',
  path: '/v1/models/{+model}',
  chain: 'local',
  codec: modelForms,
  bodyLimit: 0,
  serve: async ex => modelReply(ex, ex.http.params.model!),
}

/** An alias gives its model; a name with a provider gives the offer of that provider. Throws a 404. */
export function modelReply(ex: Exchange, name: string): Reply {
  const wanted = wantedOf(new URLSearchParams(ex.http.query))
  const view = viewOf(ex, wanted)
  const day = today(ex.at)
  const virtual = virtualOf(view.catalog, name)
  const entry = virtual ? virtualEntry(virtual, view, wanted, day) : realEntry(ex, name, view, wanted, day)
  if (!entry || view.denies(name)) throw errors.modelNotFound(name)
  const reply = value(entryIn(ex, entry, day))
  reply.headers.push('vary', 'authorization, x-api-key, x-goog-api-key, anthropic-version')
  if (ex.caller.principal) reply.headers.push('cache-control', 'private')
  return reply
}

function realEntry(ex: Exchange, name: string, view: View, wanted: Flags, day: string): CatalogEntry | undefined {
  const meant = meantBy(name, view.catalog, ex)
  const mappings = shownMappings(meant.model, view, wanted, day)
  const { provider, model } = meant
  const offer = provider && mappings.find(mapping => mapping.provider === provider)
  if (mappings.length === 0 || (provider && !offer)) return undefined
  return offer
    ? entryOf(model, offerOf(offer), [offer], offer.stability ?? model.stability)
    : entryOf(model, nameOf(model), mappings, model.stability)
}

function meantBy(
  name: string,
  catalog: Catalog,
  { caller: { principal } }: Exchange,
): Extract<ModelReference, { kind: 'model' }> {
  try {
    const meant = resolve(catalog, name, principal)
    if (meant.kind === 'model') return meant
  } catch (thrown) {
    // A name that needs its provider is reported as unknown, with that hint.
    throw thrown instanceof GatewayError ? thrown.with({ status: 404 }) : thrown
  }
  throw errors.modelNotFound(name)
}
