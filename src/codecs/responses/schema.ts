/** The schema of `POST /v1/responses`. Unknown fields are ignored, or passed to providers of the same wire. */
import { type Infer, s } from '../../core/schema.ts'

const text = s.maybe(s.string())
const number = s.maybe(s.number())
const tokens = s.maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))
const flag = s.maybe(s.boolean())
const name = s.string({ minLength: 1 })

const format = s.tagged(
  s.open({ type: s.enum('text', 'json_object') }),
  s.open({
    type: s.enum('json_schema'),
    name,
    description: text,
    schema: s.open({}),
    strict: flag,
  }),
)

/** `type` may be left out by messages; each type has its own reader. */
const item = s.open({ type: text })

/** Schema of the body; unknown fields pass. */
export const responsesRequest = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  input: s.maybe(s.either(s.string(), s.array(item))),
  instructions: text,
  tools: s.maybe(s.array(s.open({ type: s.string() }))),
  tool_choice: s.maybe(s.either(s.enum('auto', 'none', 'required'), s.open({ type: s.string() }))),
  parallel_tool_calls: flag,
  text: s.maybe(
    s.open({
      format: s.maybe(format),
      verbosity: s.maybe(s.enum('low', 'medium', 'high')),
    }),
  ),
  reasoning: s.maybe(
    s.open({
      effort: s.maybe(s.enum('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
      summary: text,
      context: s.maybe(s.enum('auto', 'current_turn', 'all_turns')),
      mode: s.maybe(s.enum('standard', 'pro')),
    }),
  ),
  max_output_tokens: tokens,
  temperature: number,
  top_p: number,
  stream: flag,
  store: flag,
  background: flag,
  previous_response_id: text,
  prompt_cache_key: text,
  user: text,
  service_tier: text,
  metadata: s.maybe(s.open({})),
  stop: s.optional(s.unknown()),
  truncation: s.maybe(s.enum('auto', 'disabled')),
  include: s.maybe(s.array(s.string())),
})

/** A body that matches the schema. */
export type ResponsesRequest = Infer<typeof responsesRequest>
