/** Joins the files of models and providers to a catalogue. */
import type { Catalog, OpenModels } from '../core/catalog.ts'
import type { ImageTokens } from '../core/media.ts'
import type { Mapping, Model, Provider } from '../core/translator.ts'
import { unknownName } from '../lib/nearest.ts'
import { linkPinned, readAliases } from './aliases.ts'
import { travelsSafely } from './auth.ts'
import { linkCaps } from './custom-caps.ts'
import { linkEgress } from './egress.ts'
import { DEFAULT_LISTEN } from './environment.ts'
import type { ConfigFiles } from './load.ts'
import { linkMappings, linkOpen } from './mapping.ts'
import { linkProvider, type WireRegistries } from './provider.ts'
import type { Registries } from './registries.ts'
import type { GatewayFile } from './schemas/gateway.ts'
import type { ModelEntry } from './schemas/models.ts'
import { linkRules, linkVirtual } from './virtual-models.ts'

/** Throws a ConfigError. Omits disabled providers entirely. */
export function linkCatalog(
  files: ConfigFiles,
  registries: WireRegistries & Pick<Registries, 'found' | 'simulated'> & Partial<Pick<Registries, 'endpoints'>>,
): Catalog {
  const offers = new Map<string, Mapping[]>()
  const entries = readModels(files, registries)
  const aliases = readAliases(files.models, new Set(entries.keys()))
  const models = new Map<string, Model>()
  for (const [id, entry] of entries) {
    const mappings: Mapping[] = []
    offers.set(id, mappings)
    models.set(id, linkModel(entry, mappings, aliases.byModel.get(id) ?? [], registries))
  }

  const egress = linkEgress(files.gateway)
  const providers = new Map<string, Provider>()
  const open = new Map<string, OpenModels>()
  for (const file of files.providers) {
    if (!file.value.enabled || (isSimulated(file, registries) && !servesDemo(files.gateway.value))) continue
    const provider = linkProvider(file, registries, egress)
    if (providers.has(provider.id)) {
      throw file.source.error(`the provider "${provider.id}" is defined twice; keep one`, ['provider'])
    }
    providers.set(provider.id, provider)
    for (const mapping of linkMappings(file, provider, models, registries)) offers.get(mapping.model.id)!.push(mapping)
    const more = linkOpen(file, provider, registries)
    if (more) open.set(provider.id, more)
  }
  for (const model of models.values()) Object.freeze(model.mappings)
  const byAlias = new Map([...models.values()].flatMap(model => model.aliases.map(alias => [alias, model] as const)))
  const customCaps = linkCaps(files.gateway.value.custom_providers)
  const catalog = { models, aliases: byAlias, providers, open, customCaps, egress }
  const pinned = linkPinned(aliases, catalog)
  const virtual = linkVirtual(files.routes, { ...catalog, pinned }, registries.endpoints ?? [])
  return { ...catalog, pinned, virtual, rules: linkRules(files.routes, { ...catalog, pinned, virtual }) }
}

const isSimulated = ({ value }: ConfigFiles['providers'][number], { simulated }: Pick<Registries, 'simulated'>) =>
  simulated !== undefined && URL.canParse(value.base_url) && simulated.has(new URL(value.base_url).origin)

/** A simulated answer must not be taken for a model's where strangers can reach the gateway. */
const servesDemo = ({ server: { demo, listen = DEFAULT_LISTEN } }: GatewayFile): boolean =>
  demo === 'on' || (demo === 'auto' && travelsSafely(new URL(`http://${listen}`)))

/** Models by id. */
function readModels(files: ConfigFiles, { operations }: WireRegistries): Map<string, ModelEntry> {
  const entries = new Map<string, ModelEntry>()
  for (const { source, value } of files.models) {
    for (const [index, entry] of value.models.entries()) {
      if (entries.has(entry.id)) {
        throw source.error(`the model "${entry.id}" is defined twice; keep one`, ['models', index, 'id'])
      }
      const odd = entry.operations?.findIndex(name => !Object.hasOwn(operations, name)) ?? -1
      if (odd >= 0) {
        const message = unknownName('operation', entry.operations![odd]!, Object.keys(operations))
        throw source.error(message, ['models', index, 'operations', odd])
      }
      entries.set(entry.id, entry)
    }
  }
  return entries
}

function linkModel(
  entry: ModelEntry,
  mappings: readonly Mapping[],
  aliases: readonly string[],
  registries: WireRegistries,
): Model {
  return Object.freeze({
    id: entry.id,
    name: entry.name,
    description: entry.description,
    family: entry.family,
    aliases,
    ...(entry.hidden && { hidden: true as const }),
    created: entry.created === undefined ? 0 : Date.parse(entry.created) / 1000,
    tokenizer: entry.tokenizer,
    imageTokens: entry.image_tokens && linkImageTokens(entry.image_tokens),
    audioTokens: entry.audio_tokens,
    input: entry.input,
    output: entry.output,
    contextLength: entry.context_length,
    maxOutput: entry.max_output,
    stability: entry.stability,
    deprecatedAt: entry.deprecated_at,
    deactivatedAt: entry.deactivated_at,
    operations: entry.operations ?? operationsOf(entry, registries),
    mappings,
  })
}

const linkImageTokens = ({
  patch_size,
  per_patch,
  base,
  max,
}: NonNullable<ModelEntry['image_tokens']>): ImageTokens => ({
  patchSize: patch_size,
  perPatch: per_patch,
  base,
  max,
})

/** Operations of a model whose file lists none (docs/contract.md#operations). */
export function operationsOf(
  model: Pick<Model, 'input' | 'output'>,
  { operations }: Pick<WireRegistries, 'operations'>,
): string[] {
  const all = Object.values(operations)
  const implied = all.filter(operation => operation.impliedBy(model))
  return (implied.length > 0 ? implied : all.slice(0, 1)).map(({ name }) => name)
}
