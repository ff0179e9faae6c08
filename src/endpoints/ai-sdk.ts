/** The AI SDK's gateway protocol below its prefixes, and the addresses that its clients request at the origin. */

import { notAVersion, notServed } from '../codecs/ai-sdk/error.ts'
import { versionOfPath } from '../codecs/ai-sdk/version.ts'
import { aiSdk, aiSdkValue } from '../codecs/ai-sdk.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { formatMoney } from '../core/money.ts'
import { isOffered, offerOf } from '../core/offer.ts'
import { value } from '../core/reply.ts'
import type { Mapping } from '../core/translator.ts'
import { errors } from '../lib/error.ts'
import { chat } from '../operations/chat/index.ts'
import { jsonReply } from './leased-pieces.ts'
import { listing } from './listings.ts'
import { listedIn, noFlags, shownMappings, today, type View, viewOf, virtualIn } from './model-view.ts'
import { virtualListed } from './virtual-entry.ts'

const PREFIXES = ['/v1/ai', '/v2/ai', '/v3/ai', '/v4/ai']
const local = { chain: 'local', codec: aiSdkValue, bodyLimit: 0 } as const

const credits = (path: string): Endpoint => ({
  ...local,
  name: 'credits',
  method: 'GET',
  path,
  async serve({ caller: { principal } }, { ledger }) {
    if (!principal) throw errors.noCredentials()
    if (principal.kind !== 'key') throw errors.forbidden('Only regular gateway API keys may read credits.')
    if (principal.member?.role === 'developer') throw errors.forbidden('Developers may not read credits: ask an admin.')
    const { balance, used } = await ledger.balance(principal.orgId)
    return value({ balance: formatMoney(balance), total_used: formatMoney(used) })
  },
})

const missing = (method: 'GET' | 'POST', path: string): Endpoint => ({
  ...local,
  name: 'ai-sdk',
  method,
  path,
  bodyLimit: 32 * 1024 * 1024,
  async serve({ http: { params }, endpoint }) {
    throw notServed(params.path ?? endpoint.path.slice(1))
  },
})

const at = (prefix: string): Endpoint[] => [
  {
    name: 'ai-sdk',
    method: 'POST',
    path: `${prefix}/language-model`,
    chain: 'inference',
    operation: chat,
    codec: aiSdk,
    serve: 'upstream',
    bodyLimit: 32 * 1024 * 1024,
  },
  {
    ...local,
    name: 'ai-sdk',
    method: 'GET',
    path: `${prefix}/config`,
    async serve(ex, services) {
      if (!ex.caller.principal) throw errors.noCredentials()
      return jsonReply(await listOf(ex), ex, services)
    },
  },
  credits(`${prefix}/credits`),
  missing('POST', `${prefix}/{+path}`),
  missing('GET', `${prefix}/{+path}`),
]

/** One entry per chat offer that the key could call now, as JSON. */
function listOf(ex: Exchange): Buffer | Promise<Buffer> {
  const view = viewOf(ex, noFlags)
  const day = today(ex.at)
  const version = `v${versionOfPath(ex.endpoint.path).number}`
  return listing(view, `ai-sdk ${version}`, day, () => ({
    models: [...offersIn(view, day), ...virtualOffersIn(view, day)].map(([id, mapping]) =>
      entryOf(id, mapping, version),
    ),
  }))
}

/** Chat offers by the name for requests. */
function offersIn(view: View, day: string): [id: string, mapping: Mapping][] {
  const mappings = listedIn(view).flatMap(model => shownMappings(model, view, noFlags, day))
  const offers = new Map(mappings.filter(one => isOffered(one, 'chat')).map(one => [offerOf(one), one]))
  return [...offers].filter(([id]) => !view.denies(id))
}

/** Virtual models whose targets all chat, each with its first offer under its own name. */
const virtualOffersIn = (view: View, day: string): [id: string, mapping: Mapping][] =>
  virtualIn(view).flatMap(one => {
    const listed = virtualListed(one, view, noFlags, day)
    if (!listed?.mappings.every(mapping => isOffered(mapping, 'chat'))) return []
    return [[listed.id, Object.assign({}, listed.mappings[0]!, { model: listed.model })]]
  })

function entryOf(id: string, { model, provider, pricing }: Mapping, specificationVersion: string): object {
  const { prompt: input, completion: output, input_cache_read, input_cache_write } = pricing
  const isPriced = input !== undefined && output !== undefined
  return {
    id,
    name: model.name,
    description: model.description ?? null,
    pricing: isPriced ? { input, output, input_cache_read, input_cache_write } : null,
    specification: { specificationVersion, provider: provider.id, modelId: id },
    modelType: 'language',
  }
}

/** The version after the last one: its clients get an error that they can read. */
const NEXT = '/v5/ai'

const notYet = (method: 'GET' | 'POST'): Endpoint => ({
  ...missing(method, `${NEXT}/{+path}`),
  async serve() {
    throw notAVersion(NEXT)
  },
})

/** Paths of the protocol that the gateway does not serve get a 404 in the protocol's form. */
export const aiSdkEndpoints: readonly Endpoint[] = [
  ...PREFIXES.flatMap(at),
  notYet('GET'),
  notYet('POST'),
  credits('/v1/credits'),
  missing('POST', '/v1/realtime/client-secrets'),
  missing('GET', '/v1/report'),
  missing('GET', '/v1/generation'),
]
