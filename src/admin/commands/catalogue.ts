/** Providers, models, chains and routing of the running configuration. */
import type { Catalog, Mapping, Model, Provider } from '../../core/catalog.ts'
import type { Link } from '../../core/chain.ts'
import { formatDecimal } from '../../core/money.ts'
import { foundOffers, isLive, offerOf } from '../../core/offer.ts'
import type { ProviderHealth } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import type { Route } from '../../core/snapshot.ts'
import { errors } from '../../lib/error.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { organization, partArguments, partOf, provider } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

function countModels(catalog: Catalog): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const model of catalog.models.values()) {
    for (const id of new Set(model.mappings.map(mapping => mapping.provider.id))) {
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  }
  for (const { provider } of foundOffers(catalog)) counts.set(provider.id, (counts.get(provider.id) ?? 0) + 1)
  return counts
}

/** A provider with its count of models; credentials are fingerprints. */
export type ListedProvider = ReturnType<typeof describeProvider>
const describeProvider = (provider: Provider, { status, credentials }: ProviderHealth, models: number) => ({
  id: provider.id,
  name: provider.name,
  status,
  models,
  variables: [...(provider.variables?.secret ?? []), ...(provider.variables?.address ?? [])],
  wires: Object.fromEntries([...provider.wires].map(([op, { wire }]): [string, string] => [op, wire])),
  credentials,
})

/** `providers.list` and `providers.health`. */
export const providerCommands: CommandTable = {
  /** Wires by operation; credentials as fingerprints. */
  'providers.list': command(s.object({}), async (_, context) => {
    const { catalog } = context.snapshot()
    const counts = countModels(catalog)
    return (await context.providerHealth()).flatMap(health => {
      // A reload may come in between.
      const provider = catalog.providers.get(health.id)
      return provider ? [describeProvider(provider, health, counts.get(provider.id) ?? 0)] : []
    })
  }),
  'providers.health': command(s.object({}), (_, context) => context.providerHealth()),
}

const deactivated = (at: string | undefined): boolean => at !== undefined && Date.parse(at) <= Date.now()

const live = ({ model, provider, deactivatedAt }: Mapping): boolean =>
  isLive(provider) && !deactivated(deactivatedAt) && !deactivated(model.deactivatedAt)

/** USD per million units; the rate is in pico-USD per unit; null when unknown. */
const perMillion = (rate: bigint | undefined): string | null =>
  rate === undefined ? null : formatDecimal(rate * 1_000_000n, 12)

/** `pricing` is null when no price is known, which does not mean free. */
const describeMapping = (mapping: Mapping) => ({
  provider: mapping.provider.id,
  externalId: mapping.externalId,
  live: live(mapping),
  webSearch: mapping.supports.has('web_search'),
  pricing: mapping.price ? mapping.pricing : null,
  inputPerMillion: perMillion(mapping.price?.rates.prompt),
  outputPerMillion: perMillion(mapping.price?.rates.completion),
  contextLength: mapping.contextLength ?? mapping.model.contextLength ?? null,
  maxOutput: mapping.maxOutput ?? mapping.model.maxOutput ?? null,
})

/** A model with its offers; null for a limit or a date that no file states. */
export type ListedModel = ReturnType<typeof describeModel>
const describeModel = (model: Model) => ({
  id: model.open ? offerOf(model.mappings[0]!) : model.id,
  name: model.name,
  family: model.family,
  aliases: model.aliases,
  live: model.mappings.some(live),
  contextLength: model.contextLength ?? null,
  maxOutput: model.maxOutput ?? null,
  deprecatedAt: model.deprecatedAt ?? null,
  deactivatedAt: model.deactivatedAt ?? null,
  providers: model.mappings.map(describeMapping),
})

/** Whether `query` is part of one of the model's names. */
function matches(model: Model, query: string): boolean {
  const names = [model.id, model.name, model.family, ...model.aliases]
  for (const { provider, externalId } of model.mappings) names.push(provider.id, externalId)
  return names.some(name => name.toLowerCase().includes(query))
}

/** `models.list`. */
export const modelCommands: CommandTable = {
  /** → the models with `query` as part of a name, or all; then those listed by providers. */
  'models.list': command(s.object({ query: s.optional(s.string()) }), ({ query = '' }, context) => {
    const { catalog } = context.snapshot()
    const models = [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)]
    return models.filter(model => matches(model, query.toLowerCase())).map(describeModel)
  }),
}

const manifest = s.string({ minLength: 1, description: 'a manifest as in providers.d, YAML or JSON' })

/** A manifest as declared. */
export interface ShownManifest {
  readonly organization: string
  readonly provider: string
  readonly manifest: unknown
  readonly createdAt: string
}

/** `models.custom.*`: providers that organizations declare. */
export const customModelCommands: CommandTable = {
  /** → `{organization, provider, models}`. Replaces a provider with the same id. */
  'models.custom.add': command(
    s.object({ organization, manifest }),
    ({ organization, manifest }, { policies }, actor) => policies.manifests.declare(organization, manifest, actor),
  ),
  'models.custom.list': command(
    s.object({ organization: s.optional(organization), ...partArguments }),
    async ({ organization, ...part }, { policies }): Promise<ShownManifest[]> =>
      (await policies.manifests.list(organization, ...partOf(part))).map(({ manifest, ...rest }) => ({
        ...rest,
        manifest: JSON.parse(manifest) as unknown,
      })),
  ),
  'models.custom.remove': command(
    s.object({ organization, provider }),
    async ({ organization, provider }, { policies }, actor) => {
      await policies.manifests.remove(organization, provider, actor)
      return { organization, provider }
    },
  ),
}

const endpoint = s.string({ minLength: 1, description: 'the name or the path of an endpoint' })

interface ExplainedFilter {
  readonly name: string
  readonly runs: 'once per request' | 'once per attempt'
  readonly needs: readonly string[]
  readonly gives: readonly string[]
  /** In effect, with defaults. */
  readonly options: unknown
}

/** Filters below a repeating one run once per attempt. */
function explainLinks(links: readonly Link[]): ExplainedFilter[] {
  let perAttempt = false
  return links.map(link => {
    const { name, needs = [], gives = [], repeats = false } = link.factory
    const runs = perAttempt ? 'once per attempt' : 'once per request'
    perAttempt ||= repeats
    return { name, runs, needs, gives, options: link.options }
  })
}

/** An endpoint with the filters of its chain, in order. */
export type ExplainedChain = ReturnType<typeof explain>
const explain = ({ endpoint, chain, compat }: Route) => ({
  endpoint: endpoint.name,
  method: endpoint.method,
  path: endpoint.path,
  compat,
  chain: endpoint.chain,
  filters: explainLinks(chain.links),
  end: endpoint.serve === 'upstream' ? 'provider' : 'local',
})

/** `explain`, by the name or the path of an endpoint. */
export const explainCommands: CommandTable = {
  /** → `{endpoint, method, path, compat, chain, filters, end}` of the first endpoint with this name. */
  explain: command(s.object({ endpoint }), (args, context) => {
    const routes = context.snapshot().routes()
    const found =
      routes.find(route => route.endpoint.name === args.endpoint) ??
      routes.find(route => route.endpoint.path === args.endpoint)
    if (found) return explain(found)
    const known = [...new Set(routes.map(route => route.endpoint.name))].sort()
    throw errors.notFound(`There is no endpoint "${args.endpoint}". Endpoints: ${known.join(', ')}.`)
  }),
}

const question = s.object({
  model: s.string({ minLength: 1, maxLength: 256, description: 'a model, as a request names it' }),
  routing: s.optional(s.enum('auto', 'price', 'throughput', 'latency')),
  stream: s.optional(s.boolean()),
  prompt: s.optional(s.integer({ minimum: 0, maximum: 1_000_000, description: 'tokens, at most 1000000' })),
  session: s.optional(s.string({ minLength: 1, maxLength: 256 })),
})

/** `route.explain`. */
export const routeCommands: CommandTable = {
  /** → the candidates with their measurements and all terms of their scores, the selection and its reason. */
  'route.explain': command(question, async (args, context) => mapText(await context.explainRoute(args), maskAll)),
}
