/** Joins what the files say of models and providers. */
import { type Catalog, type Mapping, type Model, type Provider, REGION } from '../core/catalog.ts'
import { unknownName } from '../core/nearest.ts'
import { linkPinned, readAliases } from './aliases.ts'
import type { ConfigFile } from './file.ts'
import type { ConfigFiles } from './load.ts'
import { linkPricing } from './pricing.ts'
import { linkProvider, linkWires, type WireRegistries } from './provider.ts'
import type { MappingEntry, ModelEntry, ProviderFile } from './schema.ts'
import type { Path } from './source.ts'

/** Throws a ConfigError. Providers that are turned off are left out wholly. */
export function linkCatalog(files: ConfigFiles, registries: WireRegistries): Catalog {
  const offers = new Map<string, Mapping[]>()
  const entries = readModels(files)
  const aliases = readAliases(files.models, new Set(entries.keys()))
  const models = new Map<string, Model>()
  for (const [id, entry] of entries) {
    const mappings: Mapping[] = []
    offers.set(id, mappings)
    models.set(id, linkModel(entry, mappings, aliases.byModel.get(id) ?? []))
  }

  const providers = new Map<string, Provider>()
  for (const file of files.providers) {
    if (!file.value.enabled) continue
    const provider = linkProvider(file, registries)
    if (providers.has(provider.id)) {
      throw file.source.error(`the provider "${provider.id}" is defined twice; keep one`, ['provider'])
    }
    providers.set(provider.id, provider)
    for (const mapping of linkMappings(file, provider, models, registries)) offers.get(mapping.model.id)!.push(mapping)
  }
  for (const model of models.values()) Object.freeze(model.mappings)
  const byAlias = new Map([...models.values()].flatMap(model => model.aliases.map(alias => [alias, model] as const)))
  const catalog = { models, aliases: byAlias, providers }
  return { ...catalog, pinned: linkPinned(aliases, catalog) }
}

/** By id. */
function readModels(files: ConfigFiles): Map<string, ModelEntry> {
  const entries = new Map<string, ModelEntry>()
  for (const { source, value } of files.models) {
    for (const [index, entry] of value.models.entries()) {
      if (entries.has(entry.id)) {
        throw source.error(`the model "${entry.id}" is defined twice; keep one`, ['models', index, 'id'])
      }
      entries.set(entry.id, entry)
    }
  }
  return entries
}

function linkModel(entry: ModelEntry, mappings: readonly Mapping[], aliases: readonly string[]): Model {
  return Object.freeze({
    id: entry.id,
    name: entry.name,
    description: entry.description,
    family: entry.family,
    aliases,
    created: entry.created === undefined ? 0 : Date.parse(entry.created) / 1000,
    tokenizer: entry.tokenizer,
    input: entry.input,
    output: entry.output,
    contextLength: entry.context_length,
    maxOutput: entry.max_output,
    stability: entry.stability,
    deprecatedAt: entry.deprecated_at,
    deactivatedAt: entry.deactivated_at,
    mappings,
  })
}

/** Throws a ConfigError. `models` are those that the file may name. */
export function* linkMappings(
  { source, value }: ConfigFile<ProviderFile>,
  provider: Provider,
  models: ReadonlyMap<string, Model>,
  registries: WireRegistries,
): Generator<Mapping> {
  const mapped = new Set<string>()
  for (const [index, entry] of value.models.entries()) {
    const fail = (message: string, path: Path) => source.error(message, ['models', index, ...path])
    const model = models.get(entry.model)
    if (!model) throw fail(unknownName('model', entry.model, models.keys()), ['model'])
    if (mapped.has(model.id)) throw fail(`the model "${model.id}" is mapped twice by this provider`, ['model'])
    mapped.add(model.id)
    const own = linkWires(source, entry.wires, registries, ['models', index, 'wires'])
    yield linkMapping(entry, model, provider, own, fail)
  }
}

function linkMapping(
  entry: MappingEntry,
  model: Model,
  provider: Provider,
  own: Provider['wires'],
  fail: Parameters<typeof linkPricing>[2],
): Mapping {
  return Object.freeze({
    model,
    provider,
    externalId: entry.id ?? model.id,
    wires: own.size === 0 ? provider.wires : new Map([...provider.wires, ...own]),
    ...linkPricing(entry, model.output.includes('text'), fail),
    unpriced: entry.unpriced,
    supports: new Set(entry.supports),
    reasoningEfforts: entry.reasoning_efforts,
    reasoningModes: entry.reasoning_modes,
    serviceTiers: entry.service_tiers,
    regions: linkRegions(entry, provider, fail),
    parameters: entry.parameters && new Set(entry.parameters),
    contextLength: entry.context_length ?? model.contextLength,
    maxOutput: entry.max_output ?? model.maxOutput,
    minCacheableTokens: entry.min_cacheable_tokens,
    maxN: entry.max_n,
    stability: entry.stability,
    deprecatedAt: entry.deprecated_at,
    deactivatedAt: entry.deactivated_at,
  })
}

/** Regions that become part of an address must be able to. */
function linkRegions(
  { regions }: MappingEntry,
  { baseUrl }: Provider,
  fail: Parameters<typeof linkPricing>[2],
): readonly string[] {
  if (!baseUrl.includes(REGION)) return regions
  if (regions.length === 0) {
    throw fail(`the provider's address holds "${REGION}", so each of its models needs the key "regions"`, ['model'])
  }
  const odd = regions.findIndex(region => !/^[a-z0-9-]{1,64}$/.test(region))
  if (odd >= 0) throw fail('expected a region such as "us-east-1"', ['regions', odd])
  return [...new Set(regions)]
}
