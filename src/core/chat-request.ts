/** The canonical request of chat. Its type is inferred from the schema that validates it. */
import { type Infer, type Schema, s } from './schema.ts'

const effort = s.enum('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')
const cacheControl = s.open({ type: s.enum('ephemeral'), ttl: s.optional(s.enum('5m', '1h')) })
const breakpoint = s.optional(s.open({ mode: s.enum('explicit') }))
const thought = s.optional(s.open({ vendor: s.optional(s.open({ thought_signature: s.optional(s.string()) })) }))

const contentPart = s.tagged(
  s.open({
    type: s.enum('text'),
    text: s.string(),
    extra_content: thought,
    cache_control: s.optional(cacheControl),
    prompt_cache_breakpoint: breakpoint,
  }),
  s.open({
    type: s.enum('image_url'),
    image_url: s.open({ url: s.string({ minLength: 1 }), detail: s.optional(s.enum('low', 'high', 'auto')) }),
    cache_control: s.optional(cacheControl),
    prompt_cache_breakpoint: breakpoint,
  }),
  s.open({
    type: s.enum('input_audio'),
    input_audio: s.open({
      data: s.string(),
      format: s.enum('wav', 'mp3', 'aiff', 'aac', 'ogg', 'flac', 'm4a', 'mpeg', 'mpga', 'mp4', 'pcm', 'webm'),
    }),
    prompt_cache_breakpoint: breakpoint,
  }),
  s.open({
    type: s.enum('file'),
    file: s.open({
      filename: s.optional(s.string()),
      file_data: s.optional(s.string()),
      file_id: s.optional(s.string()),
    }),
    cache_control: s.optional(cacheControl),
    prompt_cache_breakpoint: breakpoint,
  }),
  s.open({ type: s.enum('refusal'), refusal: s.string() }),
)

/** The input of a custom tool is free text; the arguments of a function are JSON. */
const toolCall = s.tagged(
  s.open({
    id: s.string(),
    type: s.enum('function'),
    function: s.open({ name: s.string({ minLength: 1 }), arguments: s.string() }),
    extra_content: thought,
  }),
  s.open({
    id: s.string(),
    type: s.enum('custom'),
    custom: s.open({ name: s.string({ minLength: 1 }), input: s.string() }),
    extra_content: thought,
  }),
)

/** Entries without fields of their own in the interface travel whole: they are a provider's data for another turn. */
const reasoningDetail = s.open({
  type: s.optional(s.string()),
  text: s.maybe(s.string()),
  signature: s.maybe(s.string()),
  data: s.maybe(s.string()),
  format: s.maybe(s.string()),
})

const phase = s.enum('commentary', 'final_answer')
/** Repeated phases are accepted: clients that concatenate all strings of deltas send them back joined. */
const phases = s.string({ pattern: '^(?:commentary|final_answer){1,64}$' })

/** A field that the interface does not list: used when it has the right type, and never a reason to refuse. */
const unlisted = <T>() => s.optional(s.unknown() as Schema<T>)

const message = s.open({
  role: s.enum('developer', 'system', 'user', 'assistant', 'tool', 'function'),
  content: s.maybe(s.either(s.string(), s.array(contentPart))),
  name: s.optional(s.string()),
  tool_call_id: s.optional(s.string()),
  tool_calls: s.maybe(s.array(toolCall)),
  reasoning: s.maybe(s.string()),
  reasoning_content: s.maybe(s.string()),
  reasoning_details: s.maybe(s.array(reasoningDetail)),
  refusal: s.maybe(s.string()),
  phase: s.maybe(s.either(phase, phases)),
  content_before_tool_calls: s.maybe(s.boolean()),
  message_items: s.maybe(
    s.array(
      s.open({
        text: s.string(),
        phase: s.maybe(phase),
        preceding_tool_calls: s.maybe(s.integer({ minimum: 0 })),
      }),
    ),
  ),
  provider_native_blocks: s.maybe(s.array(s.open({ type: s.string() }))),
  tool_result_cache_control: s.optional(cacheControl),
  /** The single call of a turn, in the form before `tool_calls`. */
  function_call: unlisted<{ name: string; arguments: string }>(),
  /** For a result: whether the tool failed. */
  is_error: unlisted<boolean>(),
})

const tool = s.tagged(
  s.open({
    type: s.enum('function'),
    function: s.open({
      name: s.string({ minLength: 1 }),
      description: s.optional(s.string()),
      parameters: s.optional(s.open({})),
      strict: unlisted<boolean | null>(),
    }),
    defer_loading: s.optional(s.boolean()),
    cache_control: s.optional(cacheControl),
  }),
  s.open({
    type: s.enum('custom'),
    custom: s.open({
      name: s.string({ minLength: 1 }),
      description: s.optional(s.string()),
      format: s.optional(s.open({ type: s.string() })),
    }),
  }),
  s.open({
    type: s.enum('tool_search'),
    tool_search_type: s.string({ pattern: '^tool_search_tool' }),
    name: s.optional(s.string()),
  }),
  s.open({
    type: s.enum('web_search'),
    user_location: s.optional(
      s.open({
        city: s.optional(s.string()),
        region: s.optional(s.string()),
        country: s.optional(s.string()),
        timezone: s.optional(s.string()),
      }),
    ),
    search_context_size: s.optional(s.enum('low', 'medium', 'high')),
    max_uses: s.optional(s.number()),
    allowed_domains: s.optional(s.array(s.string())),
    blocked_domains: s.optional(s.array(s.string())),
  }),
)

const named = s.optional(s.open({ name: s.optional(s.string()) }))
/** A tool by its name. */
const allowedTool = s.open({ type: s.string(), name: s.optional(s.string()), function: named, custom: named })

const toolChoice = s.either(
  s.enum('auto', 'none', 'required'),
  s.tagged(
    s.open({ type: s.enum('function'), function: s.open({ name: s.string({ minLength: 1 }) }) }),
    s.open({ type: s.enum('custom'), custom: s.open({ name: s.string({ minLength: 1 }) }) }),
    s.open({ type: s.enum('web_search') }),
    s.open({
      type: s.enum('allowed_tools'),
      allowed_tools: s.open({ mode: s.enum('auto', 'required'), tools: s.array(allowedTool, { minItems: 1 }) }),
    }),
  ),
)

/** A function in the form before tools. */
interface LegacyFunction {
  name: string
  description?: string
  parameters?: object
}

const responseFormat = s.tagged(
  s.open({ type: s.enum('text', 'json_object') }),
  s.open({
    type: s.enum('json_schema'),
    json_schema: s.open({
      name: s.string({ minLength: 1 }),
      description: s.optional(s.string()),
      schema: s.open({}),
      strict: s.maybe(s.boolean()),
    }),
  }),
)

const number = s.maybe(s.number())
const tokens = s.maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))

/** Parameters that the interface does not list, for wires that have them. */
export type PassedParameters = {
  /** At least one, none empty. */
  stop?: readonly string[]
  seed?: number
  logprobs?: boolean
  top_logprobs?: number
  logit_bias?: Readonly<Record<string, number>>
  top_k?: number
}

/** `POST /v1/chat/completions`, docs/contract.md#chat-requests. Keys that are not named here are ignored. */
export const chatRequest = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  messages: s.array(message, { minItems: 1 }),
  temperature: number,
  top_p: number,
  frequency_penalty: number,
  presence_penalty: number,
  max_tokens: tokens,
  max_completion_tokens: tokens,
  response_format: s.maybe(responseFormat),
  stream: s.maybe(s.boolean()),
  n: s.maybe(s.integer({ minimum: 1, maximum: 128 })),
  prompt_cache_key: s.maybe(s.string()),
  prompt_cache_retention: s.maybe(s.enum('in_memory', '24h')),
  prompt_cache_options: s.maybe(
    s.open({ mode: s.optional(s.enum('implicit', 'explicit')), ttl: s.optional(s.enum('30m')) }),
  ),
  user: s.maybe(s.string()),
  tools: s.maybe(s.array(tool)),
  tool_choice: s.maybe(toolChoice),
  parallel_tool_calls: unlisted<boolean | null>(),
  functions: unlisted<LegacyFunction[]>(),
  function_call: unlisted<'auto' | 'none' | { name: string }>(),
  reasoning_effort: s.maybe(effort),
  reasoning: s.maybe(
    s.open({
      effort: s.maybe(effort),
      max_tokens: tokens,
      context: s.optional(s.enum('auto', 'current_turn', 'all_turns')),
      mode: s.optional(s.enum('standard', 'pro')),
    }),
  ),
  effort: s.maybe(s.enum('low', 'medium', 'high')),
  verbosity: s.maybe(s.enum('low', 'medium', 'high')),
  service_tier: s.maybe(s.enum('auto', 'default', 'flex', 'priority')),
  routing: s.maybe(s.enum('auto', 'price', 'throughput', 'latency')),
  free_models_only: s.maybe(s.boolean()),
  onboarding: s.maybe(s.boolean()),
  no_reasoning: s.maybe(s.boolean()),
  sensitive_word_check: s.maybe(s.open({ status: s.enum('DISABLE', 'ENABLE') })),
  image_config: s.maybe(
    s.open({
      aspect_ratio: s.optional(s.string()),
      image_size: s.optional(s.string()),
      image_quality: s.optional(s.enum('low', 'medium', 'high', 'xhigh', 'max', 'auto')),
      moderation: s.optional(s.enum('auto', 'low')),
      n: s.optional(s.number({ minimum: 1, maximum: 128 })),
      seed: s.optional(s.number()),
    }),
  ),
  web_search: s.maybe(s.boolean()),
  plugins: s.maybe(s.array(s.open({ id: s.enum('response-healing') }))),
  stop: unlisted<unknown>(),
  seed: unlisted<unknown>(),
  logprobs: unlisted<unknown>(),
  top_logprobs: unlisted<unknown>(),
  logit_bias: unlisted<unknown>(),
  top_k: unlisted<unknown>(),
})

/** The body as a client sends it. */
export type ChatBody = Infer<typeof chatRequest>
/** A chat body with one name for each concept. `functions` only marks the legacy form of the answer. */
export type ChatRequest = Omit<ChatBody, 'tool_choice' | 'function_call' | keyof PassedParameters> &
  PassedParameters & {
    tool_choice?: Exclude<ChatBody['tool_choice'], { type: 'allowed_tools' }>
    /**
     * False when the client sees no reasoning, so that none is summarized. Set by codecs; not a field of a chat body.
     */
    include_reasoning?: false
    /** A mapping may approximate the requested reasoning. Not a field of a chat body. */
    lenient_reasoning?: true
    /** The gateway set the cache marks of the prompt. Not a field of a chat body. */
    auto_cached?: true
    /** Each message is a separate prompt with its own answers. Not a field of a chat body. */
    prompts?: true
    /** The answer repeats its prompt. Not a field of a chat body. */
    echo?: true
    /** Options by provider name. Not a field of a chat body. */
    provider_options?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
    /** Models tried after `model`, in order; may include it. Read by the operation from every client wire. */
    models?: readonly string[]
    /** Also read by the operation from every client wire. */
    provider?: ProviderPreferences
  }
/** A message of a canonical chat request. */
export type Message = ChatRequest['messages'][number]
/** A part of a message whose content is a list. */
export type ContentPart = Exclude<NonNullable<Message['content']>, string>[number]
/** A tool that a request offers to the model. */
export type Tool = NonNullable<ChatRequest['tools']>[number]
/** A call in an assistant's message: of a function, or of a custom tool. */
export type ToolCall = NonNullable<Message['tool_calls']>[number]
/** A tool call whose arguments are JSON text. */
export type FunctionCall = Extract<ToolCall, { type: 'function' }>
/** The value of `reasoning_effort` in a chat request. */
export type ReasoningEffort = NonNullable<ChatRequest['reasoning_effort']>

/** The provider preferences of a request: allowed providers and their order (docs/routing.md#routing-by-request). */
export interface ProviderPreferences {
  /** Ids: these first, in this order. */
  readonly order?: readonly string[]
  /** Ids: no others. */
  readonly only?: readonly string[]
  /** Ids: none of these. */
  readonly ignore?: readonly string[]
  /** False: `order` is all that may be called; without it, one provider is. */
  readonly allow_fallbacks?: boolean
  /** USD per million tokens, decimal. */
  readonly max_price?: { readonly prompt?: string; readonly completion?: string }
  readonly sort?: 'price' | 'throughput' | 'latency'
}
