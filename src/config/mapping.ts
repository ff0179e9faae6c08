/** Models in a provider's file → mappings. */
import type { FoundModel, OpenModels } from '../core/catalog.ts'
import type { Price } from '../core/money.ts'
import { isFree, serves } from '../core/offer.ts'
import { REGION } from '../core/provider-settings.ts'
import type { Mapping, Model, Provider } from '../core/translator.ts'
import { unknownName } from '../lib/nearest.ts'
import { schemeOf } from './auth.ts'
import type { ConfigFile } from './file.ts'
import { OpenCatalog } from './open.ts'
import { linkPricing } from './pricing.ts'
import { linkWires, type WireRegistries } from './provider.ts'
import type { Registries } from './registries.ts'
import { type OfferEntry, type OpenEntry, openEntry } from './schemas/offer.ts'
import { mappingsIn, type ProviderFile } from './schemas/provider.ts'
import type { Path } from './source.ts'
import { check } from './validate.ts'

type Fail = Parameters<typeof linkPricing>[2]

/** Throws a ConfigError. `models`: those that the file may name. */
export function* linkMappings(
  { source, value }: ConfigFile<ProviderFile>,
  provider: Provider,
  models: ReadonlyMap<string, Model>,
  registries: WireRegistries,
): Generator<Mapping> {
  const mapped = new Set<string>()
  for (const [index, entry] of mappingsIn(value).entries()) {
    const fail = (message: string, path: Path) => source.error(message, ['models', index, ...path])
    const model = models.get(entry.model)
    if (!model) throw fail(unknownName('model', entry.model, models.keys()), ['model'])
    if (mapped.has(model.id)) throw fail(`the model "${model.id}" is mapped twice by this provider`, ['model'])
    mapped.add(model.id)
    const own = linkWires(source, entry.wires, registries, ['models', index, 'wires'])
    yield linkMapping(dated(entry, value), model, provider, own, registries, fail)
  }
}

/** Offers of models that no file lists, if the provider's file allows them. Throws a ConfigError. */
export function linkOpen(
  { source, value }: ConfigFile<ProviderFile>,
  provider: Provider,
  registries: WireRegistries & Pick<Registries, 'found'>,
): OpenModels | undefined {
  const { found = () => NONE } = registries
  const entry = value.open ?? (value.models === 'open' ? openDefaults() : undefined)
  if (!entry) {
    if (value.discover) throw source.error('"discover" needs "models: open"; add it', ['discover'])
    return undefined
  }
  if (value.discover && value.base_url.includes(REGION)) {
    throw source.error(`models cannot be discovered at an address that contains "${REGION}"`, ['discover'])
  }
  if (value.discover && schemeOf(value) === 'aws-sigv4') {
    throw source.error('the models of a provider with auth scheme "aws-sigv4" cannot be discovered', ['discover'])
  }
  const fail = (message: string, path: Path) => source.error(message, ['open', ...path])
  const own = linkWires(source, entry.wires, registries, ['open', 'wires'])
  const template = linkMapping(dated(entry, value), unnamed(provider, entry), provider, own, registries, fail)
  const mapped = new Set(mappingsIn(value).map(({ id, model }) => id ?? model))
  return new OpenCatalog(template, mapped, value.discover ? () => found(provider.baseUrl) : undefined)
}

const NONE: readonly FoundModel[] = []

function openDefaults(): OpenEntry {
  const checked = check(openEntry, {})
  if ('issue' in checked) throw new Error(checked.issue.message)
  return checked.value
}

/** Properties shared by all models that no file lists; only the name differs. */
function unnamed({ id: family }: Provider, { supports }: OpenEntry): Model {
  const input = ['text']
  if (supports.includes('vision')) input.push('image')
  if (supports.includes('audio_input')) input.push('audio')
  if (supports.includes('file_input')) input.push('file')
  return { ...newModel('', family, input, ['text']), open: true }
}

/** A model of which nothing else is known. */
export const newModel = (id: string, family: string, input: readonly string[], output: readonly string[]): Model => ({
  id,
  name: id,
  description: undefined,
  family,
  aliases: [],
  created: 0,
  tokenizer: undefined,
  input,
  output,
  contextLength: undefined,
  maxOutput: undefined,
  stability: undefined,
  deprecatedAt: undefined,
  deactivatedAt: undefined,
  mappings: [],
})

const dated = <T extends OfferEntry>(entry: T, { priced_at }: ProviderFile): T => ({
  ...entry,
  priced_at: entry.priced_at ?? priced_at,
})

function linkMapping(
  entry: OfferEntry,
  model: Model,
  provider: Provider,
  own: Provider['wires'],
  { operations }: WireRegistries,
  fail: Fail,
): Mapping {
  const spokenTo = own.size === 0 ? provider.wires : new Map([...provider.wires, ...own])
  const wires = withBridges(spokenTo, model, operations)
  const served = [...wires.keys()].filter(op => serves(model, op))
  const priced = served.length > 0 ? served : (model.operations ?? [])
  const isPriced = (price: Price) => priced.every(op => operations[op]!.isPriced(price, model))
  const prices = linkPricing(entry, isPriced, fail)
  // No charge depends on what a free answer used in the end.
  const cancellable = entry.cancellable ?? (isFree(prices) || undefined)
  return Object.freeze({
    model,
    provider,
    externalId: entry.id ?? model.id,
    wires,
    ...prices,
    unpriced: entry.unpriced,
    pricedAt: entry.priced_at,
    supports: new Set(entry.supports),
    reasoningEfforts: entry.reasoning_efforts,
    reasoningModes: entry.reasoning_modes,
    reasoningSwitch: entry.reasoning_switch,
    serviceTiers: entry.service_tiers,
    regions: linkRegions(entry, provider, fail),
    parameters: entry.parameters && new Set(entry.parameters),
    contextLength: entry.context_length ?? model.contextLength,
    maxOutput: entry.max_output ?? model.maxOutput,
    minCacheableTokens: entry.min_cacheable_tokens,
    autoCache: entry.cache === 'auto',
    ...(cancellable !== undefined && { cancellable }),
    maxN: entry.max_n ?? 1,
    voices: entry.voices,
    maxInputCharacters: entry.max_input_characters,
    maxFile: entry.max_file,
    maxImageN: entry.max_n,
    sizes: entry.sizes,
    aspectRatios: entry.aspect_ratios,
    maxImages: entry.max_images,
    videoSizes: entry.video_sizes,
    videoSeconds: entry.video_seconds,
    maxReferenceImages: entry.max_reference_images,
    stability: entry.stability,
    deprecatedAt: entry.deprecated_at,
    deactivatedAt: entry.deactivated_at,
  })
}

/** The wires of a mapping, with bridges that serve further operations through them. */
function withBridges(
  wires: Provider['wires'],
  model: Model,
  operations: WireRegistries['operations'],
): Provider['wires'] {
  let all = wires
  for (const { name, bridge } of Object.values(operations)) {
    const translator = bridge?.(wires, model)
    if (translator) all = new Map([...all, [name, translator]])
  }
  return all
}

/** Regions become part of the address and must be valid there. */
function linkRegions({ regions }: OfferEntry, { baseUrl }: Provider, fail: Fail): readonly string[] {
  if (!baseUrl.includes(REGION)) return regions
  if (regions.length === 0) {
    throw fail(`the provider's address contains "${REGION}", so each of its models needs the key "regions"`, ['model'])
  }
  const odd = regions.findIndex(region => !/^[a-z0-9-]{1,64}$/.test(region))
  if (odd >= 0) throw fail('expected a region such as "us-east-1"', ['regions', odd])
  return [...new Set(regions)]
}
