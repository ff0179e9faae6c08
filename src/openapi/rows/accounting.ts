/** Usage, cost and routing, which answers of every chat wire hold. */
import { s } from '../../core/schema.ts'
import { named, orNull } from '../row.ts'

const usd = orNull(s.number())
const count = s.optional(s.number())
const text = s.optional(s.string())

/** Costs in USD; null where the price is unknown. */
export const costDetails = named(
  'CostDetails',
  s.open({
    upstream_inference_cost: s.number(),
    upstream_inference_prompt_cost: s.number(),
    upstream_inference_completions_cost: s.number(),
    total_cost: s.optional(usd),
    input_cost: s.optional(usd),
    output_cost: s.optional(usd),
    cached_input_cost: s.optional(usd),
    cache_write_input_cost: s.optional(usd),
    request_cost: s.optional(usd),
    web_search_cost: s.optional(usd),
    image_input_cost: s.optional(usd),
    image_output_cost: s.optional(usd),
    audio_input_cost: s.optional(usd),
    data_storage_cost: s.optional(usd),
    cache_saving: count,
  }),
)

/** Token counts and cost of a chat answer. */
export const usage = named(
  'Usage',
  s.open({
    prompt_tokens: s.number(),
    completion_tokens: s.number(),
    total_tokens: s.number(),
    reasoning_tokens: count,
    prompt_tokens_details: s.optional(
      s.open({
        cached_tokens: s.number(),
        cache_write_tokens: count,
        cache_creation_tokens: count,
        cache_creation: s.optional(
          s.open({ ephemeral_5m_input_tokens: s.number(), ephemeral_1h_input_tokens: s.number() }),
        ),
        audio_tokens: count,
        video_tokens: count,
      }),
    ),
    completion_tokens_details: s.optional(
      s.open({ reasoning_tokens: count, image_tokens: count, audio_tokens: count }),
    ),
    cost: s.optional(usd),
    cost_details: s.optional(costDetails),
    info: text,
  }),
)

const attempt = named(
  'RoutingAttempt',
  s.open({
    provider: s.string(),
    model: s.string(),
    region: text,
    status_code: s.number(),
    error_type: s.string(),
    succeeded: s.boolean(),
    apiKeyHash: text,
    credentialSource: s.optional(s.enum('byok', 'platform')),
    providerKeyId: text,
    providerKeyLabel: text,
    logId: text,
  }),
)

/** How a request was routed. */
export const metadata = named(
  'Metadata',
  s.open({
    request_id: s.string(),
    log_id: text,
    requested_model: s.string(),
    requested_provider: orNull(s.string()),
    used_model: s.string(),
    used_provider: s.string(),
    underlying_used_model: s.string(),
    used_region: s.optional(orNull(s.string())),
    organization_id: text,
    project_id: text,
    discount: s.optional(usd),
    used_service_tier: text,
    cached: s.optional(s.boolean()),
    max_tokens: count,
    stopped_by: text,
    healing_skipped: text,
    routing: s.optional(s.array(attempt)),
  }),
)
