/** LiteLLM's health endpoints: the process, its stores, and the models that a key may call. */
import { json } from '../../codecs/json.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import type { Exchange } from '../../core/exchange.ts'
import { offerOf } from '../../core/offer.ts'
import { catalogOf } from '../../core/policy.ts'
import type { Circuits } from '../../core/ports.ts'
import { value } from '../../core/reply.ts'
import type { Mapping } from '../../core/translator.ts'
import { ask } from '../../endpoints/health.ts'
import { errors } from '../../lib/error.ts'
import { candidatesOf } from '../../routing/candidate.ts'
import { providerHealth } from '../../routing/provider-health.ts'
import { deploymentsOf } from './deployments.ts'

const row = { name: 'health', method: 'GET', chain: 'local', codec: json, bodyLimit: 0 } as const

const alive = (path: string): Endpoint => ({ ...row, path, open: true, serve: async () => value("I'm alive!") })

/** Open to all: 503 where a store does not answer. */
const readiness: Endpoint = {
  ...row,
  path: '/health/readiness',
  open: true,
  async serve(_ex, { version, database, redis }) {
    const [db, cache] = await Promise.all([ask(database), redis && ask(redis)])
    const healthy = db.connected && cache?.connected !== false
    const record = {
      status: healthy ? 'healthy' : 'unhealthy',
      db: db.connected ? 'connected' : 'Not connected',
      cache: redis ? 'redis' : null,
      litellm_version: version,
      success_callbacks: [],
      last_updated: new Date().toISOString(),
    }
    return healthy ? value(record) : value({ ...record, detail: 'Service Unhealthy (a store does not answer)' }, 503)
  },
}

/** The models of a key by what real requests showed of them: nothing is sent to a provider. */
const all: Endpoint = {
  ...row,
  path: '/health',
  async serve(ex, { circuits }) {
    if (!ex.caller.principal) throw errors.noCredentials()
    const query = new URLSearchParams(ex.http.query)
    const model = query.get('model')
    const id = query.get('model_id')
    const mappings = new Set(
      deploymentsOf(ex)
        .filter(one => (model === null || one.name === model) && (id === null || offerOf(one.mapping) === id))
        .map(one => one.mapping),
    )
    const failing = failures(ex, circuits)
    const entries = [...mappings].map(mapping => ({ mapping, error: failing(mapping) }))
    const healthy = entries.filter(({ error }) => error === undefined).map(({ mapping }) => shown(mapping))
    const unhealthy = entries
      .filter(({ error }) => error !== undefined)
      .map(({ mapping, error }) => Object.assign(shown(mapping), { error }))
    return value({
      healthy_endpoints: healthy,
      unhealthy_endpoints: unhealthy,
      healthy_count: healthy.length,
      unhealthy_count: unhealthy.length,
    })
  },
}

const shown = (mapping: Mapping) => ({
  model: `${mapping.provider.id}/${mapping.externalId}`,
  model_id: offerOf(mapping),
})

/** Returns why a mapping cannot serve now, by the circuits of this process. */
function failures(ex: Exchange, circuits: Circuits): (mapping: Mapping) => string | undefined {
  const providers = new Map(providerHealth(catalogOf(ex), circuits).map(one => [one.id, one]))
  return mapping => {
    const { status, broken = [] } = providers.get(mapping.provider.id) ?? {}
    if (status === 'no answer' || status === 'credential failing') return `The provider's state is "${status}".`
    const open = new Set(broken.map(({ offer }) => offer))
    const isBroken = candidatesOf(mapping).every(({ key }) => open.has(key))
    return isBroken ? 'Its last requests failed.' : undefined
  }
}

/** `/health` and what stands below it. */
export const healthEndpoints: readonly Endpoint[] = [
  alive('/health/liveliness'),
  alive('/health/liveness'),
  readiness,
  all,
]
