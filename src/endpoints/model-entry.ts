/** An entry of the catalogue in the form of docs/contract.md#catalogue. */
import { isFree, offerOf, serves } from '../core/offer.ts'
import type { Capability } from '../core/provider-settings.ts'
import { type Schema, s } from '../core/schema.ts'
import type { Mapping, Model } from '../core/translator.ts'
import { imageBody, imageEditBody } from '../operations/images/request.ts'
import { ocrBody } from '../operations/ocr/request.ts'
import { rerankBody } from '../operations/rerank/request.ts'
import { speechBody } from '../operations/speech/request.ts'
import { transcriptionBody, translationBody } from '../operations/transcriptions/request.ts'
import { videoBody } from '../operations/videos/request.ts'

/** The name for requests: a model that no file lists needs its provider. */
export const nameOf = ({ id, open, mappings: [first] }: Model): string => (open && first ? offerOf(first) : id)

/** Creation date of a model that is known without one, in seconds; the same on all nodes. Clients read 0 as 1970. */
const UNDATED = Date.UTC(2025, 0, 1) / 1000

/** The entry for all `mappings` of a model, or for one of them. Prices are those of the first. */
export function entryOf(model: Model, id: string, mappings: readonly Mapping[], stability: string | undefined) {
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
    created: model.created || UNDATED,
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

/** Latest end of all offers; undefined while one has no end. */
const last = (dates: (string | undefined)[]) => (dates.includes(undefined) ? undefined : dates.sort().at(-1))
const earlier = (one: string | undefined, other: string | undefined) => [one, other].filter(Boolean).sort()[0]

function mappingOf(mapping: Mapping): object {
  const { supports } = mapping
  const { web_search: _search, internal_reasoning: _reasoning, ...pricing } = mapping.pricing
  return clean({
    providerId: mapping.provider.id,
    externalId: mapping.externalId,
    supportedVideoSizes: mapping.videoSizes ?? [],
    supportsVideoAudio: supports.has('video_audio'),
    supportsVideoWithoutAudio: supports.has('video_without_audio'),
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

/** Parameters that every mapping accepts by default, and those of capabilities. */
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

/** Bodies of media operations, whose optional fields are the parameters of their models. */
const bodies: Partial<Record<string, Schema<unknown>>> = {
  images: imageBody,
  image_edits: imageEditBody,
  videos: videoBody,
  speech: speechBody,
  transcriptions: transcriptionBody,
  translations: translationBody,
  rerank: rerankBody,
  ocr: ocrBody,
}

function optionalOf({ json }: Schema<unknown>): string[] {
  const { properties = {}, required = [] } = json as { properties?: object; required?: readonly string[] }
  return Object.keys(properties).filter(name => name !== 'model' && !required.includes(name))
}

/** Parameters of embedding models. */
const ofVectors = ['encoding_format', 'dimensions', 'user']

/** Parameters that a mapping's list of `parameters` cannot remove; `reasoning` goes with `reasoning_effort`. */
const always = new Set(['max_tokens', 'tools', 'web_search', 'encoding_format'])

/** The request parameters that have an effect at one of the mappings or more. */
function parametersOf(mappings: readonly Mapping[]): string[] {
  const names = new Set<string>()
  for (const mapping of mappings) {
    const { parameters, provider } = mapping
    const taken = (name: string) =>
      (!parameters || always.has(name) || parameters.has(name === 'reasoning' ? 'reasoning_effort' : name)) &&
      !provider.quirks.drop.has(name)
    for (const name of offeredBy(mapping).filter(taken)) names.add(name)
  }
  return [...names]
}

function offeredBy({ model, supports, maxN, serviceTiers, wires }: Mapping): readonly string[] {
  if (model.output.includes('embedding')) return ofVectors
  const served = [...wires.keys()].filter(op => serves(model, op))
  const media = served.flatMap(op => optionalOf(bodies[op] ?? s.object({})))
  if (served.length > 0 && !served.includes('chat')) return media
  const offered: string[] = [...base, ...media]
  for (const [capability, more] of Object.entries(byCapability)) {
    if (supports.has(capability as Capability)) offered.push(...more)
  }
  if (maxN > 1) offered.push('n')
  if (serviceTiers.length > 0) offered.push('service_tier')
  return offered
}

/** Without undefined members. */
const clean = <T extends object>(entry: T): T =>
  Object.fromEntries(Object.entries(entry).filter(([, field]) => field !== undefined)) as T
