/** Reads price lists of others: models.dev's api.json, and LiteLLM's file of prices and sizes. */
import type { tokenPriceKeys } from '../../config/schemas/pricing.ts'
import { formatDecimal } from '../../core/money.ts'
import { isObject, type Json, jsonIn, objectIn } from '../../json/json.ts'
import { Failure } from '../io.ts'
import { RENAMED } from '../litellm/providers.ts'

export type TokenKey = (typeof tokenPriceKeys)[number]
/** Prices in USD per unit; those with a point stand in a map, by the key behind it. */
export type UnitKey = 'ocr_page' | 'ocr_page_annotated' | 'input_audio_hour' | `${'per_image' | 'per_second'}.${string}`
/** USD per million tokens, or characters of speech, or per unit as the shortest decimals. */
export type Prices = Partial<Record<TokenKey | UnitKey, string>>

/** A model of a list. */
export interface Listed {
  /** Our id of the provider. */
  readonly provider: string
  /** The provider's own name of the model. */
  readonly id: string
  readonly name: string
  readonly prices: Prices
  /** The prices are those of images, pages, seconds or characters: an offer that is paid by tokens has no like. */
  readonly ofUnits?: boolean
  readonly tiers: readonly { readonly above: number; readonly prices: Prices }[]
  readonly context: number | undefined
  readonly output: number | undefined
  /** The context counts the prompt alone. */
  readonly ofPrompt: boolean
  /** The day from which the list calls it retired; undefined while it is not. */
  readonly retired: string | undefined
  readonly operation: 'chat' | 'embeddings' | undefined
  readonly supports: readonly string[]
  readonly input: readonly string[]
}

/** A list, with the name by which entries say that they came from it. */
export interface PriceList {
  readonly label: 'models.dev' | 'litellm'
  readonly models: readonly Listed[]
}

/** Our providers by the names of both lists, where these differ. */
const PROVIDERS: Readonly<Record<string, string>> = {
  ...RENAMED,
  google: 'google-ai-studio',
  'amazon-bedrock': 'aws-bedrock',
  'fireworks-ai': 'fireworks',
  togetherai: 'together',
  moonshotai: 'moonshot',
  'novita-ai': 'novita',
  'google-vertex-anthropic': 'vertex-anthropic',
  'azure-cognitive-services': 'azure',
  'vertex_ai-language-models': 'google-vertex',
  'vertex_ai-embedding-models': 'google-vertex',
  'vertex_ai-anthropic_models': 'vertex-anthropic',
}

/** Our id of a provider of a list. */
export const providerOf = (name: string): string =>
  (Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined) ?? name.replace(/_/g, '-')

/** Decimals of USD per million tokens: pico-USD per token. */
const PLACES = 6
/** USD per million tokens above which a number is no price. */
const MAX_PRICE = 1e9

/**
 * A price as a decimal with at most `kept` places: the number's shortest form, moved by `shift` places. What binary numbers add
 * behind the last place is rounded away. Undefined for what is no price.
 */
export function priceOf(value: unknown, shift: number, kept = PLACES): string | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_PRICE)) return undefined
  const [mantissa = '', power = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  // `whole + fraction` stands for the value without its point; so many places are kept of it.
  const places = Number(power) + shift + kept - fraction.length
  const digits = BigInt(whole + fraction)
  const divisor = 10n ** BigInt(Math.max(0, -places))
  const amount = (digits * 10n ** BigInt(Math.max(0, Math.min(places, 400))) + divisor / 2n) / divisor
  return amount > BigInt(MAX_PRICE) * 10n ** BigInt(kept) ? undefined : formatDecimal(amount, kept)
}

const OF_MODELS_DEV: Partial<Record<TokenKey, string>> = {
  prompt: 'input',
  completion: 'output',
  internal_reasoning: 'reasoning',
  input_cache_read: 'cache_read',
  input_cache_write: 'cache_write',
  input_audio: 'input_audio',
  output_audio: 'output_audio',
}
const OF_LITELLM: Partial<Record<TokenKey, string>> = {
  prompt: 'input_cost_per_token',
  completion: 'output_cost_per_token',
  internal_reasoning: 'output_cost_per_reasoning_token',
  input_cache_read: 'cache_read_input_token_cost',
  input_cache_write: 'cache_creation_input_token_cost',
  input_cache_write_1h: 'cache_creation_input_token_cost_above_1hr',
  input_audio: 'input_cost_per_audio_token',
  input_audio_cache_read: 'cache_read_input_audio_token_cost',
  output_audio: 'output_cost_per_audio_token',
  image_input: 'input_cost_per_image_token',
  image_output: 'output_cost_per_image_token',
}

function pricesIn(record: Json, fields: Partial<Record<TokenKey, string>>, shift: number, suffix = ''): Prices {
  const prices: Prices = {}
  for (const [key, field] of Object.entries(fields) as [TokenKey, string][]) {
    const price = priceOf(record[field + suffix], shift)
    if (price !== undefined) prices[key] = price
  }
  // Lists have zeros for unknown prices, and nothing becomes free by that.
  return Object.values(prices).every(price => price === '0') ? {} : prices
}

/** Reads a list, whose shape shows its source. Throws a Failure for anything else, under the name `where`. */
export function readList(text: string, where: string, today: string): PriceList {
  const value = jsonIn(text)
  if (value === undefined) {
    throw new Failure(`${where} is not valid JSON; name models.dev's api.json or LiteLLM's file of prices`)
  }
  const entries = isObject(value) ? Object.entries(value).filter((one): one is [string, Json] => isObject(one[1])) : []
  if (entries.some(([, one]) => typeof one.litellm_provider === 'string')) {
    return { label: 'litellm', models: merged(entries.flatMap(([name, one]) => ofLiteLlm(name, one, today))) }
  }
  if (entries.some(([, one]) => isObject(one.models))) {
    return { label: 'models.dev', models: entries.flatMap(([name, one]) => ofModelsDev(name, one, today)) }
  }
  throw new Failure(`${where} is neither models.dev's api.json nor LiteLLM's file of prices`)
}

const count = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? (value as unknown[]).filter(one => typeof one === 'string') : []

function ofModelsDev(provider: string, { models }: Json, today: string): Listed[] {
  if (!isObject(models)) return []
  return Object.entries(models).flatMap(([id, model]) => {
    if (!isObject(model)) return []
    const cost = objectIn(model.cost)
    const limit = objectIn(model.limit)
    const modalities = objectIn(model.modalities)
    const input = texts(modalities.input)
    const isEmbedding = /embed/i.test(id)
    const isText = texts(modalities.output).includes('text') || modalities.output === undefined
    return {
      provider: providerOf(provider),
      id,
      name: typeof model.name === 'string' && model.name !== '' ? model.name : id,
      prices: pricesIn(cost, OF_MODELS_DEV, 0),
      tiers: tiersOfModelsDev(cost),
      context: count(limit.context),
      output: count(limit.output),
      ofPrompt: false,
      retired: model.status === 'deprecated' ? today : undefined,
      operation: isEmbedding ? 'embeddings' : isText ? 'chat' : undefined,
      supports: isEmbedding
        ? []
        : [
            'streaming',
            ...(model.tool_call === true ? ['tools'] : []),
            ...(input.includes('image') ? ['vision'] : []),
            ...(model.reasoning === true ? ['reasoning'] : []),
            ...(model.structured_output === true ? ['json_output', 'structured_outputs'] : []),
          ],
      input,
    } satisfies Listed
  })
}

function tiersOfModelsDev(cost: Json): Listed['tiers'] {
  const tiers = (Array.isArray(cost.tiers) ? (cost.tiers as unknown[]) : []).flatMap(one => {
    const bound = objectIn(objectIn(one).tier)
    const above = bound.type === 'context' ? count(bound.size) : undefined
    return above === undefined ? [] : [{ above, prices: pricesIn(one as Json, OF_MODELS_DEV, 0) }]
  })
  const long = cost.context_over_200k
  if (tiers.length === 0 && isObject(long)) tiers.push({ above: 200_000, prices: pricesIn(long, OF_MODELS_DEV, 0) })
  return sorted(tiers)
}

/** In ascending order, without those that have no prices and those of one bound. */
const sorted = (tiers: { above: number; prices: Prices }[]): Listed['tiers'] =>
  tiers
    .filter(({ prices }) => Object.keys(prices).length > 0)
    .sort((a, b) => a.above - b.above)
    .filter((tier, at, all) => at === 0 || tier.above !== all[at - 1]!.above)

/** Decimals of USD per unit. */
export const UNIT_PLACES = 12
const HOUR_S = 3600
/** A picture of no size that is named: the square of 1024 pixels. */
const DEFAULT_PIXELS = 1024 * 1024
/** Names that begin with a size, such as `hd/1024-x-1024/dall-e-3`; none of those that cost by steps. */
const SIZED = /^(?:(standard|hd|low|medium|high)\/)?(\d{2,5})-x-(\d{2,5})\/(?!(?:\d+|max)-steps\/)(.+)$/

/** A size of pictures, with its key in a map of prices. */
interface Size {
  readonly key: string
  readonly pixels: number
}

function sizeOf(quality: string | undefined, width: number, height: number): Size {
  const size = `${width}x${height}`
  return { key: quality === undefined || quality === 'standard' ? size : `${quality}/${size}`, pixels: width * height }
}

/** Prices of images, pages, seconds and characters; empty for models that the list prices by tokens. */
function unitPricesIn(model: Json, { key: size, pixels }: Size = { key: 'default', pixels: DEFAULT_PIXELS }): Prices {
  const { mode } = model
  const prices: Prices = {}
  const set = (key: TokenKey | UnitKey, value: unknown, times = 1, shift = 0) => {
    const product = typeof value === 'number' ? Number((value * times).toPrecision(15)) : undefined
    const price = priceOf(product, shift, shift > 0 ? PLACES : UNIT_PLACES)
    if (price !== undefined && price !== '0') prices[key] ??= price
  }
  if (mode === 'image_generation' || mode === 'image_edit') {
    const key = `per_image.${size}` as const
    set(key, model.output_cost_per_image)
    set(key, model.input_cost_per_image)
    set(key, model.input_cost_per_pixel, pixels)
    set(key, model.output_cost_per_pixel, pixels)
  } else if (mode === 'ocr') {
    set('ocr_page', model.ocr_cost_per_page)
    set('ocr_page_annotated', model.annotation_cost_per_page)
  } else if (mode === 'audio_transcription') {
    set('input_audio_hour', model.input_cost_per_second, HOUR_S)
    set('input_audio_hour', model.output_cost_per_second, HOUR_S)
  } else if (mode === 'audio_speech') set('prompt', model.input_cost_per_character, 1, PLACES)
  else if (mode === 'video_generation') {
    set('per_second.default', model.output_cost_per_video_per_second)
    set('per_second.default', model.output_cost_per_second)
  }
  return prices
}

/** One entry for the sizes of a model, with all of their prices. */
function merged(models: readonly Listed[]): Listed[] {
  const found = new Map<string, Listed>()
  for (const model of models) {
    const key = `${model.provider}/${model.id}`
    const known = found.get(key)
    if (!known) found.set(key, model)
    else if (known.ofUnits && model.ofUnits) found.set(key, { ...known, prices: { ...model.prices, ...known.prices } })
  }
  return [...found.values()]
}

const TIER = /_above_(\d{1,7})k_tokens$/

function ofLiteLlm(name: string, model: Json, today: string): Listed[] {
  const { litellm_provider: given, mode } = model
  if (typeof given !== 'string' || name === 'sample_spec' || 'code_interpreter_cost_per_session' in model) return []
  const bare = name.startsWith(`${given}/`) ? name.slice(given.length + 1) : name
  const [, quality, width, height, sized] = SIZED.exec(bare) ?? []
  const id = sized?.startsWith(`${given}/`) ? sized.slice(given.length + 1) : (sized ?? bare)
  const ofTokens = pricesIn(model, OF_LITELLM, 6)
  const size = sized === undefined ? undefined : sizeOf(quality, Number(width), Number(height))
  const ofUnits = Object.keys(ofTokens).length > 0 ? {} : unitPricesIn(model, size)
  const bounds = new Set(Object.keys(model).flatMap(field => Number(TIER.exec(field)?.[1] ?? 0) || []))
  const date = typeof model.deprecation_date === 'string' ? model.deprecation_date : ''
  const flags = [
    ['supports_function_calling', 'tools'],
    ['supports_parallel_function_calling', 'parallel_tool_calls'],
    ['supports_vision', 'vision'],
    ['supports_reasoning', 'reasoning'],
    ['supports_response_schema', 'json_output'],
    ['supports_response_schema', 'structured_outputs'],
  ] as const
  const isChat = mode === 'chat' || mode === 'responses' || mode === undefined
  return [
    {
      provider: providerOf(given),
      id,
      name: id,
      prices: { ...ofTokens, ...ofUnits },
      ...(Object.keys(ofUnits).length > 0 && { ofUnits: true }),
      tiers: sorted(
        [...bounds].map(bound => ({
          above: bound * 1000,
          prices: pricesIn(model, OF_LITELLM, 6, `_above_${bound}k_tokens`),
        })),
      ),
      context: count(model.max_input_tokens) ?? count(model.max_tokens),
      output: count(model.max_output_tokens),
      ofPrompt: true,
      retired: /^\d{4}-\d\d-\d\d$/.test(date) && date <= today ? date : undefined,
      operation: mode === 'embedding' ? 'embeddings' : isChat ? 'chat' : undefined,
      supports: isChat
        ? ['streaming', ...flags.flatMap(([flag, ability]) => (model[flag] === true ? ability : []))]
        : [],
      input: ['text', ...(model.supports_vision === true ? ['image'] : [])],
    },
  ]
}
