/** Joins what the files say of models and providers. */
import { type Catalog, type Mapping, type Model, type Provider, REGION } from '../core/catalog.ts'
import type { ConfigFile } from './file.ts'
import type { ConfigFiles } from './load.ts'
import { unknownName } from '../core/nearest.ts'
import { linkPricing } from './pricing.ts'
import { linkProvider, linkWires, type WireRegistries } from './provider.ts'
import type { MappingEntry, ModelEntry, ProviderFile } from './schema.ts'
import type { Path } from './source.ts'

/** Throws a ConfigError. Providers that are turned off are left out wholly. */
export function linkCatalog(files: ConfigFiles, registries: WireRegistries): Catalog {
  const offers = new Map<string, Mapping[]>()
  const models = new Map<string, Model>()
  for (const { source, value } of files.models) {
    for (const [index, entry] of value.models.entries()) {
      if (models.has(entry.id)) {
        throw source.error(`the model "${entry.id}" is defined twice; keep one`, ['models', index, 'id'])
      }
      const mappings: Mapping[] = []
      offers.set(entry.id, mappings)
      models.set(entry.id, linkModel(entry, mappings))
    }
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
  return { models, aliases: linkAliases(files, models), providers }
}

function linkModel(entry: ModelEntry, mappings: readonly Mapping[]): Model {
  return Object.freeze({
    id: entry.id,
    name: entry.name,
    description: entry.description,
    family: entry.family,
    aliases: entry.aliases,
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

function linkAliases(files: ConfigFiles, models: ReadonlyMap<string, Model>): Map<string, Model> {
  const aliases = new Map<string, Model>()
  for (const { source, value } of files.models) {
    for (const [index, entry] of value.models.entries()) {
      for (const [position, alias] of entry.aliases.entries()) {
        const other = models.get(alias) ?? aliases.get(alias)
        if (other) {
          const owner = models.has(alias) ? 'is the id of a model' : `already stands for "${other.id}"`
          throw source.error(`the alias "${alias}" ${owner}`, ['models', index, 'aliases', position])
        }
        aliases.set(alias, models.get(entry.id)!)
      }
    }
  }
  return aliases
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
