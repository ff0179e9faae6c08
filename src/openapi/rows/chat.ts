/** Chat completions and their legacy form. */
import { s } from '../../core/schema.ts'
import { error } from '../errors.ts'
import { answered, constant, named, orNull, PIXEL, type Rows } from '../row.ts'
import { metadata, usage } from './accounting.ts'

const text = s.optional(orNull(s.string()))
const called = s.open({ name: s.string(), arguments: s.string() })
const extra = s.optional(s.open({}))
const custom = s.open({ name: s.optional(s.string()), input: s.string() })

const toolCall = named(
  'ToolCall',
  s.open({
    id: s.string(),
    type: s.enum('function', 'custom'),
    function: s.optional(called),
    custom: s.optional(custom),
    extra_content: extra,
  }),
)
const image = s.open({ type: constant('image_url'), image_url: s.open({ url: s.string() }) })
const lists = {
  reasoning_details: s.optional(s.array(s.open({}))),
  images: s.optional(s.array(image)),
  annotations: s.optional(s.array(s.open({ type: s.string() }))),
  message_items: s.optional(s.array(s.open({ text: s.string() }))),
  provider_native_blocks: s.optional(s.array(s.open({ type: s.string() }))),
  content_before_tool_calls: s.optional(s.boolean()),
  phase: s.optional(s.enum('commentary', 'final_answer')),
}
const answerMessage = named(
  'ChatAnswerMessage',
  s.open({
    role: constant('assistant'),
    content: orNull(s.string()),
    refusal: text,
    reasoning: text,
    reasoning_content: text,
    tool_calls: s.optional(s.array(toolCall)),
    function_call: s.optional(called),
    ...lists,
  }),
)
const reason = s.enum('stop', 'length', 'tool_calls', 'content_filter', 'function_call')
const logprobs = s.optional(
  orNull(
    s.open({ content: s.optional(orNull(s.array(s.open({})))), refusal: s.optional(orNull(s.array(s.open({})))) }),
  ),
)
const head = {
  id: s.string(),
  created: s.integer(),
  model: s.string(),
  system_fingerprint: text,
  provider: s.optional(s.string()),
}

const completion = named(
  'ChatCompletion',
  s.open({
    ...head,
    object: constant('chat.completion'),
    choices: s.array(s.open({ index: s.integer(), message: answerMessage, logprobs, finish_reason: reason })),
    usage,
    metadata,
  }),
)

const delta = named(
  'ChatDelta',
  s.open({
    role: s.optional(constant('assistant')),
    content: text,
    refusal: text,
    reasoning: text,
    reasoning_content: text,
    tool_calls: s.optional(
      s.array(
        s.open({
          index: s.integer(),
          id: s.optional(s.string()),
          type: s.optional(s.enum('function', 'custom')),
          function: s.optional(s.open({ name: s.optional(s.string()), arguments: s.optional(s.string()) })),
          custom: s.optional(custom),
          extra_content: extra,
        }),
      ),
    ),
    function_call: s.optional(s.open({ name: s.optional(s.string()), arguments: s.optional(s.string()) })),
    ...lists,
  }),
)
const chunk = named(
  'ChatCompletionChunk',
  s.open({
    ...head,
    object: constant('chat.completion.chunk'),
    choices: s.array(s.open({ index: s.integer(), delta, logprobs, finish_reason: s.optional(orNull(reason)) })),
    usage: s.optional(usage),
    metadata: s.optional(metadata),
  }),
)

const textChoices = s.array(
  s.open({ text: s.string(), index: s.integer(), logprobs: constant(null), finish_reason: orNull(reason) }),
)
const textHead = { id: s.string(), object: constant('text_completion'), created: s.integer(), model: s.string() }
const textCompletion = named('Completion', s.open({ ...textHead, choices: textChoices, usage, metadata }))
const textChunk = named(
  'CompletionChunk',
  s.open({ ...textHead, choices: textChoices, usage: s.optional(usage), metadata: s.optional(metadata) }),
)

const hello = [{ role: 'user', content: 'Say hello in one word.' }]
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Returns the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const STREAM =
  'With `stream: true`: server-sent events, each with the schema of a chunk. The last chunk has no choice, but usage ' +
  'and metadata; the line `data: [DONE]` ends the stream. After the first event an error is an event too.'

/** Rows by method and path. */
export const chat: Rows = {
  'POST /v1/chat/completions': {
    id: 'createChatCompletion',
    tag: 'Chat',
    summary: 'Answer a conversation',
    description: 'Parameters that are not listed are ignored.',
    body: 'ChatCompletionRequest',
    examples: {
      whole: { summary: 'A whole answer', value: { model: 'demo', messages: hello } },
      streamed: { summary: 'A streamed answer', value: { model: 'demo', messages: hello, stream: true } },
      tools: {
        summary: 'A question for which the model may call a tool',
        value: {
          model: 'demo',
          messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
          tools: [weather],
        },
      },
      toolResult: {
        summary: 'The turn after a call, with its result',
        value: {
          model: 'demo',
          messages: [
            { role: 'user', content: 'What is the weather in Paris?' },
            {
              role: 'assistant',
              content: null,
              tool_calls: [
                { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } },
              ],
            },
            { role: 'tool', tool_call_id: 'call_1', content: '{"celsius":21}' },
          ],
          tools: [weather],
        },
      },
      image: {
        summary: 'A question about an image',
        value: {
          model: 'demo',
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'What is this?' },
                {
                  type: 'image_url',
                  image_url: { url: PIXEL },
                },
              ],
            },
          ],
        },
      },
    },
    answers: answered(`The answer. ${STREAM}`, completion, {
      stream: s.either(chunk, error),
      example: {
        id: 'chatcmpl-01JD',
        object: 'chat.completion',
        created: 1_795_000_000,
        model: 'demo',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hello!' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10, cost: 0 },
        metadata: {
          request_id: 'req_01JD',
          requested_model: 'demo',
          requested_provider: null,
          used_model: 'demo',
          used_provider: 'demo',
          underlying_used_model: 'demo',
        },
      },
    }),
  },
  'POST /v1/completions': {
    id: 'createCompletion',
    tag: 'Chat',
    summary: 'Complete prompts (legacy)',
    body: 'CompletionRequest',
    examples: {
      whole: { summary: 'A whole answer', value: { model: 'demo', prompt: 'Once upon a time', max_tokens: 32 } },
      streamed: { summary: 'A streamed answer', value: { model: 'demo', prompt: 'Once upon a time', stream: true } },
    },
    answers: answered(`The completions. ${STREAM}`, textCompletion, { stream: s.either(textChunk, error) }),
  },
}
