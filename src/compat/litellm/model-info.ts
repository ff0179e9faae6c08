/** `GET /model/info` and its like: prices, sizes and abilities of each deployment, or of each name, in LiteLLM's form. */
import { json } from '../../codecs/json.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Price, Rates } from '../../core/money.ts'
import { offerOf } from '../../core/offer.ts'
import { value } from '../../core/reply.ts'
import type { Mapping } from '../../core/translator.ts'
import type { Axis } from '../../core/usage.ts'
import { entryOf } from '../../endpoints/model-entry.ts'
import { errors } from '../../lib/error.ts'
import { type Deployment, deploymentsOf } from './deployments.ts'

type Serve = Exclude<Endpoint['serve'], 'upstream'>
type Info = Readonly<Record<string, unknown>>

/** Fields of LiteLLM's prices by our axes, for rates of tokens. */
const ofTokens: Partial<Record<Axis, string>> = {
  prompt: 'input_cost_per_token',
  completion: 'output_cost_per_token',
  input_cache_read: 'cache_read_input_token_cost',
  input_cache_write: 'cache_creation_input_token_cost',
  internal_reasoning: 'output_cost_per_reasoning_token',
  input_audio: 'input_cost_per_audio_token',
  output_audio: 'output_cost_per_audio_token',
}
/** Fields for other units. */
const ofUnits: Partial<Record<Axis, string>> = {
  image: 'input_cost_per_image',
  output_images: 'output_cost_per_image',
  request: 'input_cost_per_request',
  ocr_page: 'ocr_cost_per_page',
}

/** LiteLLM's names of what a model is for, by operation. */
const modes: Readonly<Record<string, string>> = {
  chat: 'chat',
  embeddings: 'embedding',
  images: 'image_generation',
  speech: 'audio_speech',
  transcriptions: 'audio_transcription',
  rerank: 'rerank',
  moderations: 'moderation',
  videos: 'video_generation',
  ocr: 'ocr',
  realtime: 'realtime',
}

/** The deployments of a key that a query chooses. */
function chosen(ex: Exchange, ids: string, names: string): { query: URLSearchParams; found: Deployment[] } {
  if (!ex.caller.principal) throw errors.noCredentials()
  const query = new URLSearchParams(ex.http.query)
  const [id, name] = [query.get(ids), query.get(names)]
  const found = deploymentsOf(ex).filter(
    one => (id === null || offerOf(one.mapping) === id) && (name === null || one.name === name),
  )
  return { query, found }
}

const serve: Serve = async ex => {
  const { query, found } = chosen(ex, 'litellm_model_id', 'model')
  const id = query.get('litellm_model_id')
  if (id !== null && found.length === 0) {
    const message = `litellm_model_id: there is no model "${id.slice(0, 200)}" that this key may call.`
    throw errors.invalidParameters(message, 'litellm_model_id')
  }
  return value({ data: found.map(shown) })
}

/** Entries of a page, where the query does not say. */
const MODELS_PER_PAGE = 50

const servePages: Serve = async ex => {
  const { query, found } = chosen(ex, 'modelId', 'model')
  const searched = query.get('search')?.toLowerCase() ?? ''
  const data = found.filter(({ name }) => name.toLowerCase().includes(searched)).map(shown)
  const [page, size] = [numberOf(query, 'page', 1), numberOf(query, 'size', MODELS_PER_PAGE)]
  return value({
    data: data.slice((page - 1) * size, page * size),
    total_count: data.length,
    current_page: page,
    total_pages: Math.ceil(data.length / size),
    size,
  })
}

function numberOf(query: URLSearchParams, name: string, usual: number): number {
  const given = Number(query.get(name) ?? usual)
  if (Number.isSafeInteger(given) && given > 0 && given <= 100_000) return given
  throw errors.invalidField(name, 'send a whole number from 1 to 100000.')
}

const serveGroups: Serve = async ex => {
  const groups = new Map<string, Mapping[]>()
  for (const { name, mapping } of chosen(ex, '', 'model_group').found)
    groups.set(name, [...(groups.get(name) ?? []), mapping])
  return value({ data: [...groups].map(([name, mappings]) => groupOf(name, mappings)) })
}

/** As in LiteLLM, the highest number of its deployments counts, and what one of them can. */
function groupOf(name: string, mappings: readonly Mapping[]): Info {
  const group: Record<string, unknown> = {
    model_group: name,
    providers: [...new Set(mappings.map(({ provider }) => provider.id))],
    tpm: null,
    rpm: null,
  }
  for (const [field, value] of mappings.flatMap(mapping => Object.entries(infoOf(mapping)))) {
    if (!OF_GROUPS.test(field)) continue
    const known = group[field] ?? null
    const isMore = known === null || (typeof value === typeof known && Number(value) > Number(known))
    if (isMore) group[field] = value
  }
  return group
}

const OF_GROUPS = /^(?:mode|max_(?:in|out)put_tokens|(?:in|out)put_cost_per_token|supports_|supported_)/

function shown({ name, mapping }: Deployment): object {
  const { provider, externalId } = mapping
  return {
    model_name: name,
    litellm_params: { model: `${provider.id}/${externalId}`, custom_llm_provider: provider.id },
    model_info: infoOf(mapping),
  }
}

function infoOf(mapping: Mapping): Info {
  const { model, provider, supports, pricing, price } = mapping
  const context = mapping.contextLength ?? model.contextLength ?? null
  const output = mapping.maxOutput ?? model.maxOutput ?? null
  const takes = (kind: string) => model.input.includes(kind)
  return {
    id: offerOf(mapping),
    db_model: false,
    key: `${provider.id}/${mapping.externalId}`,
    litellm_provider: provider.id,
    mode: modeOf(mapping),
    max_tokens: output ?? context,
    max_input_tokens: context,
    max_output_tokens: output,
    input_cost_per_token: null,
    output_cost_per_token: null,
    ...(price ? costsOf(price) : {}),
    supports_system_messages: supports.has('streaming') || undefined,
    supports_vision: supports.has('vision') || takes('image'),
    supports_function_calling: supports.has('tools'),
    supports_parallel_function_calling: supports.has('parallel_tool_calls'),
    supports_tool_choice: supports.has('tools'),
    supports_response_schema: supports.has('structured_outputs'),
    supports_reasoning: supports.has('reasoning'),
    supports_prompt_caching: pricing.input_cache_read !== undefined,
    supports_web_search: supports.has('web_search'),
    supports_audio_input: takes('audio'),
    supports_audio_output: model.output.includes('audio'),
    supports_pdf_input: takes('file') || takes('pdf'),
    supports_native_streaming: supports.has('streaming'),
    supported_openai_params: entryOf(model, model.id, [mapping], undefined).supported_parameters,
    deprecation_date: mapping.deactivatedAt ?? model.deactivatedAt,
  }
}

function modeOf({ model, wires }: Mapping): string {
  if (model.output.includes('embedding')) return 'embedding'
  const operations = model.operations ?? [...wires.keys()]
  const operation = operations.find(one => Object.hasOwn(modes, one)) ?? 'chat'
  return modes[operation] ?? 'chat'
}

/** USD for each unit as numbers, with the higher rates of long prompts. */
function costsOf({ rates, tiers }: Price): Record<string, number> {
  const costs: Record<string, number> = {}
  const add = (list: Rates, fields: Partial<Record<Axis, string>>, suffix: string) => {
    for (const [axis, field] of Object.entries(fields) as [Axis, string][]) {
      const rate = list[axis]
      // Pico-USD: the quotient of two exact numbers is the number nearest to the price.
      if (rate !== undefined) costs[field + suffix] = Number(rate) / 1e12
    }
  }
  add(rates, ofTokens, '')
  add(rates, ofUnits, '')
  for (const tier of tiers) add(tier.rates, ofTokens, `_above_${Math.floor(tier.above / 1000)}k_tokens`)
  return costs
}

const row = { name: 'models', method: 'GET', chain: 'local', codec: json, bodyLimit: 0 } as const

/** Need a key; queries choose among what it may call. */
export const modelInfo: readonly Endpoint[] = [
  { ...row, path: '/v1/model/info', serve },
  { ...row, path: '/model/info', serve },
  { ...row, path: '/v2/model/info', serve: servePages },
  { ...row, path: '/model_group/info', serve: serveGroups },
]
