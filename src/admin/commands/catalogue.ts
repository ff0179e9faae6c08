/** Providers and models of the running configuration. */
import type { Catalog } from '../../core/catalog.ts'
import { formatDecimal } from '../../core/money.ts'
import { foundOffers, isLive, offerOf } from '../../core/offer.ts'
import type { CircuitHealth, ProviderHealth } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import type { Mapping, Model, Provider } from '../../core/translator.ts'
import { organization, partArguments, partOf, provider } from '../arguments.ts'
import { type CommandTable, command, day, list, option, rows, shell, table } from '../command.ts'

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
type ListedProvider = ReturnType<typeof describeProvider>
const describeProvider = (provider: Provider, { status, credentials }: ProviderHealth, models: number) => ({
  id: provider.id,
  name: provider.name,
  status,
  models,
  variables: [...(provider.variables?.secret ?? []), ...(provider.variables?.address ?? [])],
  wires: Object.fromEntries([...provider.wires].map(([op, { wire }]): [string, string] => [op, wire])),
  credentials,
})

/** The wires are in the JSON alone: some providers have ten. */
const showProviders = rows<ListedProvider>(
  'id, name, status, models, credentials, variables',
  ({ id, name, status, variables, models, credentials }) => {
    return [id, name, status, models, list(credentials.map(({ fingerprint }) => fingerprint)), list(variables)]
  },
)

const showCircuit = ({ circuit, openMs }: CircuitHealth): string =>
  circuit === 'open' && openMs > 0 ? `open ${Math.ceil(openMs / 1000)}s` : circuit

const showHealth = rows<ProviderHealth>(
  'id, status, credentials, offers, not closed',
  ({ id, status, credentials, offers, broken }) => [
    id,
    status,
    list(credentials.map(one => `${one.fingerprint} ${showCircuit(one)}`)),
    offers,
    list(broken.map(one => `${one.offer} ${showCircuit(one)}`)),
  ],
)

/** `providers.list` and `providers.health`. */
export const providerCommands: CommandTable = {
  'providers.health': command(
    s.object({}),
    (_, context) => context.providerHealth(),
    'show the state of each provider, its credentials, and its offers whose circuits are not closed',
    showHealth,
  ),
  /** Wires by operation; credentials as fingerprints. */
  'providers.list': command(
    s.object({}),
    async (_, context) => {
      const { catalog } = context.snapshot()
      const counts = countModels(catalog)
      return (await context.providerHealth()).flatMap(health => {
        // A reload may come in between.
        const provider = catalog.providers.get(health.id)
        return provider ? [describeProvider(provider, health, counts.get(provider.id) ?? 0)] : []
      })
    },
    'list providers: live, failing, or without a credential',
    showProviders,
  ),
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
  vision: mapping.supports.has('vision'),
  fileInput: mapping.supports.has('file_input'),
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

/** One row per offer. */
const showModels = (models: readonly ListedModel[]): string =>
  table(
    ['model', 'provider', 'live', 'context', 'input USD/M', 'output USD/M', 'aliases'],
    models.flatMap(({ id, aliases, providers, contextLength }) =>
      providers.length === 0
        ? [[id, null, 'no', contextLength, null, null, list(aliases)]]
        : providers.map(({ provider, live, contextLength, inputPerMillion, outputPerMillion }) => {
            return [id, provider, live ? 'yes' : 'no', contextLength, inputPerMillion, outputPerMillion, list(aliases)]
          }),
    ),
  )

/** `models.list`. */
export const modelCommands: CommandTable = {
  /** → the models with `query` as part of a name, or all; then those listed by providers. */
  'models.list': command(
    s.object({ query: option('[query]: part of a name, alias, family or provider', s.string()) }),
    ({ query = '' }, context) => {
      const { catalog } = context.snapshot()
      const models = [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)]
      return models.filter(model => matches(model, query.toLowerCase())).map(describeModel)
    },
    'list models, their providers and prices',
    showModels,
  ),
}

/** A manifest as declared. */
interface ShownManifest {
  readonly organization: string
  readonly provider: string
  readonly manifest: unknown
  readonly createdAt: string
}

const showManifests = rows<ShownManifest>(
  'organization, provider, address, models, created',
  ({ organization, provider, manifest, createdAt }) => {
    const { base_url, models } = manifest as { base_url: string; models: readonly { model: string }[] }
    return [organization, provider, base_url, list(models.map(({ model }) => model)), day(createdAt)]
  },
  'no custom providers; add one with `gatewayctl models custom create --org O manifest.yaml`\n',
)

const owner = shell('--org <organization>: id or name of the organization', organization)

/** `models.custom.*`: providers that organizations declare. */
export const customModelCommands: CommandTable = {
  /** → `{organization, provider, models}`. Replaces a provider with the same id. */
  'models.custom.add': command(
    s.object({
      manifest: shell(
        '[file]: the manifest, YAML or JSON (default: standard input)',
        s.string({ minLength: 1, description: 'a manifest as in providers.d, YAML or JSON' }),
      ),
      organization: owner,
    }),
    ({ organization, manifest }, { policies }, actor) => policies.manifests.declare(organization, manifest, actor),
    'declare a provider with a manifest as in providers.d, without its secret',
    ({ organization, provider, models }) => `${organization} has ${provider} now: ${models.join(', ')}\n`,
  ),
  'models.custom.list': command(
    s.object({
      organization: option('--org <organization>: only that of this organization', organization),
      ...partArguments,
    }),
    async ({ organization, ...part }, { policies }): Promise<ShownManifest[]> =>
      (await policies.manifests.list(organization, ...partOf(part))).map(({ manifest, ...rest }) => ({
        ...rest,
        manifest: JSON.parse(manifest) as unknown,
      })),
    'list declared providers',
    showManifests,
  ),
  'models.custom.remove': command(
    s.object({ provider: shell('<provider>: id of the provider', provider), organization: owner }),
    async ({ organization, provider }, { policies }, actor) => {
      await policies.manifests.remove(organization, provider, actor)
      return { organization, provider }
    },
    'withdraw a provider',
    ({ organization, provider }) => `${organization} no longer has a custom provider ${provider}\n`,
  ),
}
