/** The three kinds of files that an operator edits, as schemas. Unknown keys are refused everywhere. */
import { capabilities } from '../core/catalog.ts'
import { type Infer, type Schema, s } from '../core/schema.ts'
import { customProvidersEntry } from './custom-caps.ts'
import { plansEntry } from './plans.ts'

const id = s.string({
  pattern: '^[a-z0-9][a-z0-9-]{0,63}$',
  description: 'a provider id of lower-case letters, digits and "-", such as "acme"',
})
/** What may be the id of a model, or another name of it. */
export const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
const modelId = s.string({
  pattern: MODEL_ID.source,
  description: 'a model id of letters, digits and ".", "_", ":", "-", such as "acme-large"',
})
const port = '(?:\\d{1,4}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])'
const address = s.string({
  pattern: `^(\\[[0-9a-fA-F:]+\\]|[^:\\s]+):${port}$`,
  description: 'a host and a port of up to 65535, such as "127.0.0.1:8080"',
})
const date = s.string({ format: 'date', description: 'a date such as "2026-01-31"' })
const url = s.string({ pattern: '^https?://[^\\s]+$', description: 'an address that starts with "https://"' })
const origin = s.string({
  pattern: '^https?://[^\\s/?#@]+$',
  description: 'a scheme, a host and perhaps a port, such as "http://images.internal:9000"',
})
/** As browsers write it: without a path, and without the port that its scheme has anyway. */
const webOrigin = s.string({
  pattern: '^(?:\\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^\\s/?#@,*]+)$',
  description: 'an origin such as "https://app.example.com", or "*" for all',
})
const text = s.string({ minLength: 1 })

/** What messages call it. */
const called = <T>(description: string, { json }: Schema<T>): Schema<T> => ({ json: { ...json, description } })

/** A filter's options are checked against the filter's own schema. */
const options = called('options such as "{ rpm: 600 }"', s.record(s.unknown()))
const filterEntry = called(
  'a filter such as "auth", or with options "auth: { optional: true }"',
  s.either(s.string(), s.record(options)),
)
const chain = s.array(filterEntry, { minItems: 1 })
export type ChainEntry = Infer<typeof filterEntry>

const someWorkers = 'a number of processes from 1 to 256, or "auto"'
/** Processes that serve; `auto` is one for each core. */
const workers = s.either(
  called(someWorkers, s.integer({ minimum: 1, maximum: 256 })),
  called(someWorkers, s.enum('auto')),
)

/** `config/gateway.yaml`. `server` and `stores` are read at start, the rest on every reload. */
export const gatewayFile = s.object({
  server: s.object({
    listen: s.optional(address),
    admin: s.optional(address),
    public_url: s.optional(url),
    drain: s.optional(s.duration()),
    drain_delay: s.default(s.duration(), '0s'),
    header_timeout: s.default(s.duration(), '15s'),
    request_timeout: s.default(s.duration(), '120s'),
    write_stall: s.default(s.duration(), '60s'),
    heartbeat: s.default(s.duration(), '15s'),
    hold: s.default(s.duration(), '10s'),
    gather: s.default(s.duration(), '10ms'),
    max_connections: s.default(s.integer({ minimum: 1 }), 10_000),
    buffer: s.default(s.size(), '256MiB'),
    fetch_from: s.optional(s.array(origin)),
    cors: s.default(s.object({ origins: s.default(s.array(webOrigin), ['*']) }), {}),
    workers: s.default(workers, 1),
  }),
  /** `keep_requests`: how long request rows are kept; for ever when it is not set. */
  stores: s.object({ sqlite: text, keep_requests: s.optional(s.duration()) }),
  catalog: s.object({ models: text, providers: text, plugins: s.optional(text) }),
  chains: s.record(chain),
  endpoints: s.default(s.record(s.record(options)), {}),
  plans: plansEntry,
  custom_providers: customProvidersEntry,
})
export type GatewayFile = Infer<typeof gatewayFile>

/** Price keys of interface 2.9 that are written as USD per million tokens. */
export const tokenPriceKeys = [
  'prompt',
  'completion',
  'image_input',
  'image_output',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
] as const
/** Those that are written as USD per unit. */
export const unitPriceKeys = [
  'request',
  'web_search',
  'image',
  'ocr_page',
  'ocr_page_annotated',
  'input_audio_hour',
] as const

/** How many decimals there may be depends on the unit: see `pricing.ts`. */
const decimal = s.decimal({
  pattern: '^\\d{1,9}(\\.\\d{1,30})?$',
  description: 'a decimal number in quotes, such as "2.5"',
})
const prices = <K extends string>(keys: readonly K[]) =>
  Object.fromEntries(keys.map(key => [key, s.optional(decimal)])) as Record<
    K,
    Schema<string> & { readonly optional: true }
  >
const pricing = s.object({
  ...prices(tokenPriceKeys),
  ...prices(unitPriceKeys),
  per_second: s.optional(s.record(decimal)),
  per_image: s.optional(s.record(decimal)),
})
const tier = s.object({ above_prompt_tokens: s.integer({ minimum: 1 }), ...prices(tokenPriceKeys) })

/** How the gateway shows its credential to the provider. */
const auth = s.object({
  scheme: s.enum('bearer', 'header', 'query', 'aws-sigv4', 'gcp-oauth', 'none'),
  secret: s.optional(s.string()),
  header: s.optional(s.string({ pattern: '^[A-Za-z0-9-]{1,64}$', description: 'a header name such as "x-api-key"' })),
  /** What stands before the secret, such as "Token ". */
  prefix: s.optional(s.string({ pattern: '^[A-Za-z]{1,32} $', description: 'a word and a space, such as "Token "' })),
  parameter: s.optional(text),
  region: s.optional(s.string({ pattern: '^[a-z0-9-]{1,64}$', description: 'a region such as "us-east-1"' })),
  service: s.optional(s.string({ pattern: '^[a-z0-9-]{1,64}$', description: 'a service such as "bedrock"' })),
  scope: s.optional(text),
  /** In place of a secret: what the vendor's own tools would find in the environment, in files, or of the machine. */
  source: s.optional(s.enum('default')),
  profile: s.optional(text),
})
export type AuthEntry = Infer<typeof auth>

const state = called('true, false or a word', s.either(s.boolean(), text))
/**
 * The provider's own field that turns reasoning on and off. An effort turns it on, `none` and a tool that is forced turn
 * it off. The effort itself is sent too where `reasoning_efforts` names any but `none`.
 */
const reasoningSwitch = s.object({
  field: s.string({
    pattern: '^[A-Za-z_]\\w{0,63}(\\.[A-Za-z_]\\w{0,63})?$',
    description: 'a field such as "enable_thinking" or "thinking.type"',
  }),
  on: state,
  off: s.optional(state),
  /** The field that takes a budget of tokens. */
  budget: s.optional(text),
})

const stability = s.enum('stable', 'beta', 'experimental', 'unstable')
const count = s.optional(s.integer({ minimum: 1 }))
const lifecycle = {
  stability: s.optional(stability),
  deprecated_at: s.optional(date),
  deactivated_at: s.optional(date),
}

/** What a service tier multiplies the prices of tokens by. */
const factor = s.decimal({
  pattern: '^\\d{1,3}(\\.\\d{1,6})?$',
  description: 'a factor in quotes, such as "0.5"',
})

/** What a provider offers of a model. */
const offer = {
  wires: s.default(s.record(s.string()), {}),
  pricing: s.optional(pricing),
  pricing_tiers: s.default(s.array(tier), []),
  /** The day that the prices are of; that of the file where an offer names none. `gatewayctl models check` reads it. */
  priced_at: s.optional(date),
  unpriced: s.default(s.enum('allow', 'refuse'), 'refuse'),
  supports: s.default(s.array(s.enum(...capabilities)), []),
  reasoning_efforts: s.default(s.array(s.enum('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')), []),
  reasoning_modes: s.default(s.array(s.enum('standard', 'pro')), []),
  reasoning_switch: s.optional(reasoningSwitch),
  service_tiers: s.default(s.array(s.enum('flex', 'priority')), []),
  tier_factors: s.optional(s.object({ flex: s.optional(factor), priority: s.optional(factor) })),
  regions: s.default(s.array(text), []),
  parameters: s.optional(s.array(text)),
  context_length: count,
  max_output: count,
  min_cacheable_tokens: count,
  /** Of choices, 1 where nothing is said; of images, as many as the wire has. */
  max_n: s.optional(s.integer({ minimum: 1, maximum: 128 })),
  /** What clients may call a voice, and what the provider calls it. */
  voices: s.optional(s.record(text)),
  max_input_characters: count,
  max_file: s.optional(s.size()),
  /** Of images. */
  sizes: s.optional(s.array(text, { minItems: 1 })),
  aspect_ratios: s.optional(s.array(text, { minItems: 1 })),
  max_images: s.optional(s.integer({ minimum: 1, maximum: 16 })),
  ...lifecycle,
}
const mapping = s.object({ model: modelId, id: s.optional(text), ...offer })

/** What an operator need not say of models that nobody knows: the provider refuses what it cannot do. */
const openSupports = [
  'streaming',
  'tools',
  'parallel_tool_calls',
  'vision',
  'reasoning',
  'json_output',
  'structured_outputs',
  'audio_input',
  'file_input',
]
export const openEntry = s.object({ ...offer, supports: s.default(s.array(s.enum(...capabilities)), openSupports) })
export type OpenEntry = Infer<typeof openEntry>

const passed = s.string({
  pattern: '^[A-Za-z0-9._-]{0,64}\\*?$',
  minLength: 1,
  description: 'a token such as "context-1m-2025-08-07", or the beginning of some and "*"',
})

const nativeName = s.string({
  pattern: '^[A-Za-z0-9._-]{0,64}\\*?$',
  minLength: 1,
  description: 'a name such as "inference_geo", or the beginning of some and "*"',
})

/** `providers.d/<id>.yaml`. */
export const providerFile = s.object({
  provider: id,
  name: text,
  enabled: s.default(s.boolean(), true),
  base_url: url,
  /** Plain http to other places than this machine: for what stands in a network of the operator's. */
  allow_http: s.default(s.boolean(), false),
  auth,
  headers: s.default(s.record(s.string()), {}),
  pass_headers: s.default(s.record(s.array(passed, { minItems: 1 })), {}),
  /** What clients of the provider's own wire may use at the operator's expense, besides what costs nothing. */
  native_fields: s.optional(s.array(nativeName, { minItems: 1 })),
  native_tools: s.optional(s.array(nativeName, { minItems: 1 })),
  wires: s.record(s.string()),
  quirks: s.default(
    s.object({
      drop: s.default(s.array(text), []),
      rename: s.default(s.record(text), {}),
      default: s.default(s.record(s.unknown()), {}),
      clamp: s.default(s.record(s.array(s.number(), { minItems: 2, maxItems: 2 })), {}),
    }),
    {},
  ),
  timeouts: s.default(
    s.object({
      connect: s.default(s.duration(), '5s'),
      first_event: s.optional(s.duration()),
      idle: s.default(s.duration(), '120s'),
      total: s.default(s.duration(), '900s'),
    }),
    {},
  ),
  concurrency: s.default(s.integer({ minimum: 1, maximum: 100_000 }), 256),
  /** Images at addresses are fetched for it, for a provider that takes them as data only. */
  inline_media: s.default(s.boolean(), false),
  reasoning_replay: s.optional(s.enum('reasoning', 'reasoning_content', 'reasoning_details')),
  priority: s.default(s.number({ minimum: 0 }), 1),
  /** The day that the prices of its models are of. */
  priced_at: s.optional(date),
  data_policy: s.optional(
    s.object({
      trains_on_data: s.optional(s.boolean()),
      logs_prompts: s.optional(s.boolean()),
      retention: s.optional(s.string()),
      headquarters: s.optional(s.string()),
      soc2: s.optional(s.enum('1', '2')),
      iso27001: s.optional(s.boolean()),
      gdpr: s.optional(s.boolean()),
    }),
  ),
  /** The models of the catalogue that it serves; `open`: none of them, but whatever a caller names. */
  models: s.arrayOr('open', mapping, { description: 'a list of models, or "open"' }),
  /**
   * What is said of models that stand in no file: `<provider>/<name>` is sent as it is. `models: open` is the same as
   * this, with nothing in it, beside an empty list.
   */
  open: s.optional(openEntry),
  /** Its list of models is read now and then, and stands in the catalogue: for engines that come and go. */
  discover: s.default(s.boolean(), false),
})
export type ProviderFile = Infer<typeof providerFile>
export type MappingEntry = Infer<typeof mapping>
/** What an offer is, whatever its model is called. */
export type OfferEntry = Omit<MappingEntry, 'model'>

/** The models of the catalogue that a provider serves. */
export const mappingsIn = ({ models }: Pick<ProviderFile, 'models'>): readonly MappingEntry[] =>
  models === 'open' ? [] : models

const modality = s.enum('text', 'image', 'audio', 'video', 'file', 'embedding', 'rerank', 'moderation', 'decision')
const model = s.object({
  id: modelId,
  name: text,
  description: s.optional(s.string()),
  family: text,
  aliases: s.default(s.array(modelId), []),
  created: s.optional(date),
  tokenizer: s.optional(s.string()),
  /** What it can be asked for; by default what its modalities say. */
  operations: s.optional(s.array(text, { minItems: 1 })),
  input: s.array(modality, { minItems: 1 }),
  output: s.array(modality, { minItems: 1 }),
  context_length: count,
  max_output: count,
  ...lifecycle,
})

/**
 * `config/models.d/<family>.yaml`. `aliases` are further names of models or of one provider's offers, a line each:
 * `fast: gpt-5.4-mini`, `local: ollama/qwen3:4b`.
 */
export const modelsFile = s.object({
  models: s.default(s.array(model), []),
  aliases: s.default(s.record(called('the id of a model, or "<provider>/<model>"', text)), {}),
})
export type ModelsFile = Infer<typeof modelsFile>
export type ModelEntry = ModelsFile['models'][number]
