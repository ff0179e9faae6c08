/** The schema of a Messages body, piece by piece (docs/contract.md#messages). Unknown fields and block types pass. */
import { type Infer, type Schema, s } from '../../core/schema.ts'

const cacheControl = s.maybe(s.open({ type: s.enum('ephemeral'), ttl: s.maybe(s.enum('5m', '1h')) }))
const content = s.either(s.string(), s.array(s.unknown()))
const input = s.open({})

const base64 = s.open({ type: s.enum('base64'), media_type: s.string(), data: s.string() })
const url = s.open({ type: s.enum('url'), url: s.string({ minLength: 1 }) })
const file = s.open({ type: s.enum('file'), file_id: s.string({ minLength: 1 }) })
const imageSource = s.tagged(base64, url, file)
const source = s.tagged(
  base64,
  url,
  file,
  s.open({ type: s.enum('text'), data: s.string() }),
  s.open({ type: s.enum('content'), content }),
)

const blocks = {
  text: s.open({ type: s.enum('text'), text: s.string(), cache_control: cacheControl }),
  image: s.open({ type: s.enum('image'), source: imageSource, cache_control: cacheControl }),
  document: s.open({
    type: s.enum('document'),
    source,
    title: s.maybe(s.string()),
    context: s.maybe(s.string()),
    cache_control: cacheControl,
  }),
  search_result: s.open({
    type: s.enum('search_result'),
    source: s.string(),
    title: s.string(),
    content: s.array(s.unknown()),
    cache_control: cacheControl,
  }),
  tool_use: s.open({
    type: s.enum('tool_use'),
    id: s.string({ minLength: 1 }),
    name: s.string({ minLength: 1 }),
    input,
    cache_control: cacheControl,
  }),
  tool_result: s.open({
    type: s.enum('tool_result'),
    tool_use_id: s.string({ minLength: 1 }),
    content: s.maybe(content),
    is_error: s.maybe(s.boolean()),
    cache_control: cacheControl,
  }),
  thinking: s.open({ type: s.enum('thinking'), thinking: s.string(), signature: s.maybe(s.string()) }),
  redacted_thinking: s.open({ type: s.enum('redacted_thinking'), data: s.string() }),
} as const

/** A content block with a chat form, identified by `type`. */
export type Block = Infer<(typeof blocks)[keyof typeof blocks]>
/** Schemas by the `type` of the block. */
export const blockSchemas: ReadonlyMap<string, Schema<Block>> = new Map(Object.entries(blocks))
/** Any other block: a server tool's, or one added to the wire later. */
export const anyBlock = s.open({ type: s.string({ minLength: 1 }) })

function turnOf<T>(content: Schema<T>) {
  return s.open({
    role: s.enum('user', 'assistant', 'system', 'developer', 'tool', 'function'),
    content,
    tool_call_id: s.maybe(s.string()),
    clear_at: s.maybe(s.string()),
  })
}

/** A turn; its blocks have schemas of their own. */
export const message = turnOf(content)

/** A message without content: it changes settings from its place on. */
export const setting = s.open({ role: s.enum('system'), output_config: s.open({}) })

const toolFields = {
  /** Unset or `custom` for a client tool; a versioned name for a provider tool. */
  type: s.maybe(s.string()),
  name: s.maybe(s.string({ minLength: 1, maxLength: 128 })),
  description: s.maybe(s.string()),
  strict: s.maybe(s.boolean()),
  defer_loading: s.maybe(s.boolean()),
  cache_control: cacheControl,
  max_uses: s.maybe(s.integer({ minimum: 1 })),
  allowed_domains: s.maybe(s.array(s.string())),
  blocked_domains: s.maybe(s.array(s.string())),
  user_location: s.maybe(
    s.open({
      city: s.maybe(s.string()),
      region: s.maybe(s.string()),
      country: s.maybe(s.string()),
      timezone: s.maybe(s.string()),
    }),
  ),
}
/** A client tool or a provider tool. */
export const tool = s.open(toolFields)
const customFields = { name: s.string(), input_schema: s.open({}) }
/** Required fields of client tools. */
export const customTool = s.open(customFields)

const format = s.maybe(s.open({ type: s.enum('json_schema'), schema: s.open({}) }))

/** The fields of the body; its lists have schemas of their own. */
export const fields = {
  model: s.string({ minLength: 1, maxLength: 256 }),
  messages: s.array(s.unknown(), { minItems: 1 }),
  max_tokens: s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  system: s.maybe(content),
  /** Marks the end of the prompt. */
  cache_control: cacheControl,
  temperature: s.maybe(s.number({ minimum: 0, maximum: 1 })),
  top_p: s.maybe(s.number({ minimum: 0, maximum: 1 })),
  top_k: s.maybe(s.integer({ minimum: 0 })),
  stop_sequences: s.maybe(s.array(s.string())),
  stream: s.maybe(s.boolean()),
  tools: s.maybe(s.array(s.unknown())),
  tool_choice: s.maybe(
    s.tagged(
      s.open({ type: s.enum('auto', 'any', 'none'), disable_parallel_tool_use: s.maybe(s.boolean()) }),
      s.open({
        type: s.enum('tool'),
        name: s.string({ minLength: 1 }),
        disable_parallel_tool_use: s.maybe(s.boolean()),
      }),
    ),
  ),
  metadata: s.maybe(s.open({ user_id: s.maybe(s.string()) })),
  thinking: s.maybe(
    s.open({ type: s.string(), budget_tokens: s.maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })) }),
  ),
  output_config: s.maybe(
    s.open({
      effort: s.maybe(s.enum('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
      format,
    }),
  ),
  /** The older name of `output_config.format`. */
  output_format: format,
  service_tier: s.maybe(s.string()),
} as const

/** A cache mark; undefined or null without one. */
export type CacheControl = Infer<typeof cacheControl> | undefined
/** Where an image is: in the body, at an address, or a file at the provider. */
export type ImageSource = Infer<typeof imageSource>
/** A tool that has passed its schema; client tools have an `input_schema`. */
export type MessagesTool = Infer<typeof tool> & { input_schema?: Record<string, unknown> }
/** A turn whose blocks have passed their schemas. */
export type MessageTurn = Omit<Infer<typeof message>, 'content'> & { content: string | Block[] }

const body = s.open(fields)

/** Types of blocks without a schema of their own. */
const otherType = { type: 'string', minLength: 1, not: { enum: Object.keys(blocks) } }
const otherBlock: Schema<Block> = { json: { type: 'object', properties: { type: otherType }, required: ['type'] } }
const anyKnownBlock = s.either(...Object.values(blocks), otherBlock)
const listed = s.either(s.string(), s.array(anyKnownBlock))
const anyTool = s.either(
  s.open({ ...toolFields, ...customFields, type: s.maybe(s.enum('custom')) }),
  s.open({ ...toolFields, type: s.string({ not: { enum: ['custom'] } }) }),
)
const whole = {
  ...fields,
  messages: s.array(s.either(turnOf(listed), setting), { minItems: 1 }),
  system: s.maybe(listed),
  tools: s.maybe(s.array(anyTool)),
}
/** A whole body, as `checkRequest` checks it piece by piece. */
export const messagesRequest = s.open(whole)
/** The body of a token count, which needs no output limit. */
export const countRequest = s.open({ ...whole, max_tokens: s.optional(fields.max_tokens) })
/** A body that has passed all schemas. */
export type MessagesRequest = Omit<Infer<typeof body>, 'messages' | 'system' | 'tools'> & {
  messages: MessageTurn[]
  system?: string | Block[] | null | undefined
  tools?: MessagesTool[] | null | undefined
}
