/** The catalogue, in the forms of three wires. */
import { s } from '../../core/schema.ts'
import { answered, constant, named, orNull, type Rows } from '../row.ts'

const text = s.optional(s.string())
const number = s.optional(s.number())
const flag = s.optional(s.boolean())
const texts = s.array(s.string())
const usd = s.optional(s.string({ description: 'USD, as a decimal.' }))
const bySize = s.optional(s.record(s.string()))

const pricing = named(
  'Pricing',
  s.open({
    prompt: usd,
    completion: usd,
    image: usd,
    image_input: usd,
    image_output: usd,
    input_audio: usd,
    input_audio_cache_read: usd,
    output_audio: usd,
    request: usd,
    input_cache_read: usd,
    input_cache_write: usd,
    input_cache_write_1h: usd,
    web_search: usd,
    internal_reasoning: usd,
    ocr_page: usd,
    ocr_page_annotated: usd,
    input_audio_hour: usd,
    per_second: bySize,
    per_image: bySize,
  }),
)

const offer = named(
  'ModelOffer',
  s.open({
    providerId: s.string(),
    externalId: s.string(),
    supportedVideoSizes: texts,
    supportsVideoAudio: s.boolean(),
    supportsVideoWithoutAudio: s.boolean(),
    streaming: s.boolean(),
    vision: s.boolean(),
    realtime: s.boolean(),
    cancellation: s.boolean(),
    tools: s.boolean(),
    parallelToolCalls: s.boolean(),
    reasoning: s.boolean(),
    reasoning_efforts: s.optional(texts),
    reasoning_modes: s.optional(texts),
    min_cacheable_tokens: number,
    context_length: number,
    max_output: number,
    pricing,
    stability: s.string(),
  }),
)

const model = named(
  'Model',
  s.open({
    id: s.string(),
    object: constant('model'),
    name: s.string(),
    display_name: s.string(),
    description: s.string(),
    family: text,
    aliases: s.optional(texts),
    created: s.integer(),
    owned_by: s.string(),
    architecture: s.open({ input_modalities: texts, output_modalities: texts, tokenizer: s.string() }),
    operations: texts,
    top_provider: s.open({ is_moderated: s.boolean() }),
    providers: s.array(offer),
    pricing,
    context_length: number,
    max_output: number,
    per_request_limits: s.optional(s.record(s.string())),
    supported_parameters: texts,
    json_output: flag,
    structured_outputs: flag,
    free: flag,
    deprecated_at: text,
    deactivated_at: text,
    stability: s.string(),
  }),
)

const messagesModel = named(
  'MessagesModel',
  s.open({
    type: constant('model'),
    id: s.string(),
    display_name: s.string(),
    created_at: s.string(),
    lifecycle: s.enum('active', 'deprecated', 'retired'),
    deprecated_at: orNull(s.string()),
    retires_at: orNull(s.string()),
    max_input_tokens: orNull(s.integer()),
    max_tokens: orNull(s.integer()),
  }),
)

/** A model in the form of Google's clients. */
export const googleModel = named(
  'GoogleModel',
  s.open({
    name: s.string(),
    baseModelId: s.string(),
    version: s.string(),
    displayName: s.string(),
    description: s.string(),
    inputTokenLimit: s.optional(s.integer()),
    outputTokenLimit: s.optional(s.integer()),
    supportedGenerationMethods: texts,
    thinking: s.boolean(),
  }),
)

const googleList = s.open({ models: s.array(googleModel), nextPageToken: text })
const messagesList = s.open({
  data: s.array(messagesModel),
  has_more: s.boolean(),
  first_id: orNull(s.string()),
  last_id: orNull(s.string()),
})
const list = named('ModelList', s.open({ object: constant('list'), data: s.array(model) }))

const query = {
  include_restricted: { description: 'Also lists what the rules of the organization keep from the key.' },
  include_deactivated: { description: 'Also lists models that are deactivated.' },
  exclude_deprecated: { description: 'Leaves deprecated models out.' },
  no_training: { description: 'Lists only providers that do not train on what they are sent.' },
  mapped: { description: 'Lists an entry for each offer of a provider, by its own id.' },
}
const headers = {
  'anthropic-version': { description: "Asks for the form of Anthropic's clients." },
}
const FORMS = "Clients of the Messages API and of Google's API get the form of their wire. A key is optional."

/** Rows by method and path. */
export const catalogue: Rows = {
  'GET /v1/models': {
    id: 'listModels',
    tag: 'Catalogue',
    summary: 'List the models',
    description: `Without a key: what is public. With a key: what it may call. ${FORMS}`,
    headers,
    query,
    errors: 'CatalogueError',
    isPublic: true,
    answers: answered('The models.', s.either(list, messagesList, googleList)),
  },
  'GET /v1/models/{+model}': {
    id: 'getModel',
    tag: 'Catalogue',
    summary: 'Read a model',
    description: FORMS,
    headers,
    query,
    path: { model: { description: 'The id of a model, an alias, or an offer.', example: 'demo' } },
    errors: 'CatalogueError',
    isPublic: true,
    answers: answered('The model.', s.either(model, messagesModel, googleModel)),
  },
}
