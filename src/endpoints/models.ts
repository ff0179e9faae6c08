/** `GET /v1/models`: the catalogue as interface 2.9 shows it, or in the form that Messages clients read. */
import { isMessagesClient, modelList, modelPage } from '../codecs/messages/model-list.ts'
import type { Capability, Catalog, Mapping, Model } from '../core/catalog.ts'
import { type Endpoint, value, written } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { foundOffers, isFree, offerOf } from '../core/offer.ts'
import { isCallable } from '../routing/plan.ts'

const flags = ['include_restricted', 'include_deactivated', 'exclude_deprecated', 'no_training', 'mapped'] as const
type Flags = Record<(typeof flags)[number], boolean>

export const models: Endpoint = {
  name: 'models',
  method: 'GET',
  path: '/v1/models',
  chain: 'local',
  codec: modelList,
  bodyLimit: 0,
  async serve(ex) {
    const query = new URLSearchParams(ex.query)
    const wanted = Object.fromEntries(flags.map(flag => [flag, isOn(query.get(flag))])) as Flags
    const listing = list(viewOf(ex, wanted), wanted, today(ex.at))
    const isPaged = isMessagesClient(ex.headers)
    const reply = isPaged ? value(modelPage(listing, query, today(ex.at))) : written(listing)
    reply.headers.push('vary', 'authorization, x-api-key, anthropic-version')
    if (ex.principal) reply.headers.push('cache-control', 'private')
    return reply
  },
}

/** All are strings; present and not plainly negative means on. */
const isOn = (text: string | null) => text !== null && text !== 'false' && text !== '0'
const today = (at: number) => new Date(at).toISOString().slice(0, 10)

/** What a listing shows, and to whom. */
interface View {
  readonly catalog: Catalog
  /** All who see the same hold one object here and, for one object, one name. */
  readonly seer: object
  readonly name: string
  shows(mapping: Mapping): boolean
}

/** Those who are denied nothing, and call with the operator's credentials alone. */
const everybody = {}

/** With a key: what that key could call now. Without one, or where all is wanted: the public catalogue. */
function viewOf(ex: Exchange, { include_restricted: all }: Flags): View {
  const { access, policy, principal, catalog, snapshot } = ex
  if (all || !access || !policy || !principal) {
    return { catalog: snapshot.catalog, seer: everybody, name: 'public', shows: () => true }
  }
  const { mode } = principal
  const isShared = mode === 'credits' && catalog === snapshot.catalog
  return {
    catalog,
    // Rules are those of one policy, and a policy has other keys when it is another object.
    seer: access.restricted ? access : isShared ? everybody : policy,
    name: mode,
    shows: mapping => access.denial(mapping) === undefined && isCallable(ex, mapping),
  }
}

const listings = new WeakMap<object, WeakMap<Catalog, Listings>>()

/** Those of one day and of what providers listed then, by view and flags. */
interface Listings {
  readonly day: string
  readonly found: readonly (readonly Mapping[])[]
  readonly made: Map<string, Buffer>
}

/**
 * A listing is made once, as JSON, for those who see the same, a catalogue, a day and a set of flags: anybody may ask
 * for it as often as they like. Nobody asks for those of a day that is over.
 */
function list(view: View, wanted: Flags, day: string): Buffer {
  const { catalog, seer, name } = view
  let byCatalog = listings.get(seer)
  if (!byCatalog) {
    byCatalog = new WeakMap()
    listings.set(seer, byCatalog)
  }
  const found = [...(catalog.open?.values() ?? [])].map(({ listed }) => listed)
  let known = byCatalog.get(catalog)
  if (known?.day !== day || found.some((listed, at) => listed !== known!.found[at])) {
    known = { day, found, made: new Map() }
    byCatalog.set(catalog, known)
  }
  const key = [name, ...flags.filter(flag => wanted[flag])].join()
  let listing = known.made.get(key)
  if (!listing) {
    listing = Buffer.from(JSON.stringify({ object: 'list', data: entries(view, wanted, day) }))
    known.made.set(key, listing)
  }
  return listing
}

function entries({ catalog, shows }: View, wanted: Flags, day: string): object[] {
  const shown = (at: { deactivatedAt: string | undefined; deprecatedAt: string | undefined }) =>
    (wanted.include_deactivated || !at.deactivatedAt || at.deactivatedAt > day) &&
    (!wanted.exclude_deprecated || !at.deprecatedAt || at.deprecatedAt > day)
  const all: object[] = []
  for (const model of [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)]) {
    if (!shown(model)) continue
    const mappings = model.mappings
      .filter(mapping => shown(mapping) && shows(mapping))
      .filter(mapping => !wanted.no_training || mapping.provider.dataPolicy.trainsOnData === false)
    if (mappings.length === 0) continue
    if (!wanted.mapped) all.push(entryOf(model, nameOf(model), mappings, model.stability))
    else {
      for (const mapping of mappings) {
        all.push(entryOf(model, offerOf(mapping), [mapping], mapping.stability ?? model.stability))
      }
    }
  }
  return all
}

/** By which it can be requested: one that stands in no file needs its provider. */
const nameOf = ({ id, open, mappings: [first] }: Model): string => (open && first ? offerOf(first) : id)

/** What `mappings` offer of a model: all of them, or one that stands for itself. Prices are those of the first. */
function entryOf(model: Model, id: string, mappings: readonly Mapping[], stability: string | undefined): object {
  const first = mappings[0]!
  const any = (capability: Parameters<Mapping['supports']['has']>[0]) =>
    mappings.some(({ supports }) => supports.has(capability))
  return clean({
    id,
    object: 'model',
    name: model.name,
    display_name: model.name,
    description: model.description ?? '',
    family: model.family,
    aliases: model.aliases,
    created: model.created,
    owned_by: first.provider.id,
    architecture: {
      input_modalities: model.input,
      output_modalities: model.output,
      tokenizer: model.tokenizer ?? 'unknown',
    },
    operations: model.operations ?? [...first.wires.keys()],
    top_provider: { is_moderated: false },
    providers: mappings.map(mappingOf),
    pricing: { ...first.pricing, ...first.pricingBySize },
    context_length: largest(mappings.map(mapping => mapping.contextLength ?? model.contextLength)),
    max_output: largest(mappings.map(mapping => mapping.maxOutput ?? model.maxOutput)),
    per_request_limits: {},
    supported_parameters: parametersOf(mappings),
    json_output: any('json_output'),
    structured_outputs: any('structured_outputs'),
    free: mappings.some(isFree),
    deprecated_at: earlier(model.deprecatedAt, last(mappings.map(mapping => mapping.deprecatedAt))),
    deactivated_at: earlier(model.deactivatedAt, last(mappings.map(mapping => mapping.deactivatedAt))),
    stability: stability ?? 'stable',
  })
}

const largest = (numbers: (number | undefined)[]) => Math.max(0, ...numbers.map(number => number ?? 0)) || undefined

/** When the last of all offers ends: never, while one has no date. */
const last = (dates: (string | undefined)[]) => (dates.includes(undefined) ? undefined : dates.sort().at(-1))
const earlier = (one: string | undefined, other: string | undefined) => [one, other].filter(Boolean).sort()[0]

function mappingOf(mapping: Mapping): object {
  const { supports } = mapping
  const { web_search: _search, internal_reasoning: _reasoning, ...pricing } = mapping.pricing
  return clean({
    providerId: mapping.provider.id,
    externalId: mapping.externalId,
    supportedVideoSizes: [],
    supportsVideoAudio: false,
    supportsVideoWithoutAudio: false,
    streaming: supports.has('streaming'),
    vision: supports.has('vision'),
    realtime: supports.has('realtime'),
    cancellation: supports.has('cancellation'),
    tools: supports.has('tools'),
    parallelToolCalls: supports.has('parallel_tool_calls'),
    reasoning: supports.has('reasoning'),
    reasoning_efforts: mapping.reasoningEfforts,
    reasoning_modes: mapping.reasoningModes,
    min_cacheable_tokens: mapping.minCacheableTokens,
    context_length: mapping.contextLength ?? mapping.model.contextLength,
    max_output: mapping.maxOutput ?? mapping.model.maxOutput,
    pricing: { ...pricing, ...mapping.pricingBySize },
    stability: mapping.stability ?? mapping.model.stability ?? 'stable',
  })
}

/** Parameters that every mapping takes unless it says otherwise, and those that come with a capability. */
const base = ['max_tokens', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'user', 'prompt_cache_key']
const byCapability = {
  tools: ['tools', 'tool_choice'],
  parallel_tool_calls: ['parallel_tool_calls'],
  json_output: ['response_format'],
  structured_outputs: ['response_format'],
  reasoning: ['reasoning_effort', 'reasoning'],
  effort: ['effort'],
  verbosity: ['verbosity'],
  web_search: ['web_search'],
} as const satisfies Partial<Record<Capability, readonly string[]>>

/** Those of models that make vectors. */
const ofVectors = ['encoding_format', 'dimensions', 'user']

/** Parameters that a mapping's own list of `parameters` never takes away; `reasoning` goes with `reasoning_effort`. */
const always = new Set(['max_tokens', 'tools', 'web_search', 'encoding_format'])

/** The request parameters that have an effect on at least one of the mappings. */
function parametersOf(mappings: readonly Mapping[]): string[] {
  const names = new Set<string>()
  for (const mapping of mappings) {
    const { parameters, provider } = mapping
    const taken = (name: string) =>
      (!parameters || always.has(name) || parameters.has(name === 'reasoning' ? 'reasoning_effort' : name)) &&
      !provider.quirks.drop.includes(name)
    for (const name of offeredBy(mapping).filter(taken)) names.add(name)
  }
  return [...names]
}

function offeredBy({ model, supports, maxN, serviceTiers }: Mapping): readonly string[] {
  if (model.output.includes('embedding')) return ofVectors
  const offered: string[] = [...base]
  for (const [capability, more] of Object.entries(byCapability)) {
    if (supports.has(capability as Capability)) offered.push(...more)
  }
  if (maxN > 1) offered.push('n')
  if (serviceTiers.length > 0) offered.push('service_tier')
  return offered
}

/** Without the keys that have no value. */
const clean = (entry: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(entry).filter(([, field]) => field !== undefined))
