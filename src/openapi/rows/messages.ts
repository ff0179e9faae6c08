/** Anthropic's Messages API. */
import { s } from '../../core/schema.ts'
import { messagesError } from '../errors.ts'
import { answered, constant, named, orNull, type Rows } from '../row.ts'
import { metadata } from './accounting.ts'

const count = s.optional(s.integer())
const usage = named(
  'MessagesUsage',
  s.open({
    input_tokens: s.integer(),
    output_tokens: s.integer(),
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    cache_creation: s.optional(
      s.open({ ephemeral_5m_input_tokens: s.integer(), ephemeral_1h_input_tokens: s.integer() }),
    ),
    output_tokens_details: s.optional(s.open({ thinking_tokens: s.integer() })),
    server_tool_use: s.optional(s.open({ web_search_requests: s.integer(), web_fetch_requests: s.integer() })),
    service_tier: s.optional(s.string()),
    cost: s.optional(orNull(s.number())),
    info: s.optional(s.string()),
  }),
)

/** Blocks of an answer: those that clients know, and others by their type. */
const block = named(
  'MessagesAnswerBlock',
  s.open({
    type: s.string(),
    text: s.optional(s.string()),
    citations: s.optional(orNull(s.array(s.open({})))),
    thinking: s.optional(s.string()),
    signature: s.optional(s.string()),
    id: s.optional(s.string()),
    name: s.optional(s.string()),
    input: s.optional(s.open({})),
  }),
)
const stop = orNull(s.string())
const head = { id: s.string(), type: constant('message'), role: constant('assistant'), model: s.string() }
const message = named(
  'Message',
  s.open({
    ...head,
    content: s.array(block),
    stop_reason: stop,
    stop_sequence: orNull(s.string()),
    usage,
    metadata: s.optional(metadata),
  }),
)

const event = named(
  'MessagesEvent',
  s.tagged(
    s.open({ type: s.enum('message_start'), message }),
    s.open({ type: s.enum('content_block_start'), index: s.integer(), content_block: block }),
    s.open({ type: s.enum('content_block_delta'), index: s.integer(), delta: s.open({ type: s.string() }) }),
    s.open({ type: s.enum('content_block_stop'), index: s.integer() }),
    s.open({
      type: s.enum('message_delta'),
      delta: s.open({ stop_reason: stop, stop_sequence: orNull(s.string()) }),
      usage,
      metadata: s.optional(metadata),
    }),
    s.open({ type: s.enum('message_stop') }),
    s.open({ type: s.enum('ping') }),
    messagesError,
  ),
)

const hello = [{ role: 'user', content: 'Say hello in one word.' }]
const headers = {
  'anthropic-version': { description: 'Version of the wire; any is accepted.', example: '2023-06-01' },
  'anthropic-beta': { description: 'Beta features, for providers of the same wire.' },
}

/** Rows by method and path. */
export const messages: Rows = {
  'POST /v1/messages': {
    id: 'createMessage',
    tag: 'Messages',
    summary: "Answer a conversation, in the form of Anthropic's clients",
    headers,
    body: 'MessagesRequest',
    errors: 'MessagesError',
    examples: {
      whole: { summary: 'A whole answer', value: { model: 'demo', max_tokens: 64, messages: hello } },
      streamed: {
        summary: 'A streamed answer',
        value: { model: 'demo', max_tokens: 64, messages: hello, stream: true },
      },
      tools: {
        summary: 'The turn after a call of a tool, with its result',
        value: {
          model: 'demo',
          max_tokens: 64,
          system: 'Answer briefly.',
          tools: [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
          messages: [
            { role: 'user', content: 'What is the weather in Paris?' },
            {
              role: 'assistant',
              content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Paris' } }],
            },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '21 degrees' }] },
          ],
        },
      },
    },
    answers: answered(
      'The answer. With `stream: true`: server-sent events, the last of which is `message_stop`.',
      message,
      {
        stream: event,
        example: {
          id: 'msg_01JD',
          type: 'message',
          role: 'assistant',
          model: 'demo',
          content: [{ type: 'text', text: 'Hello!' }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage: { input_tokens: 8, output_tokens: 2, cost: 0 },
        },
      },
    ),
  },
  'POST /v1/messages/count_tokens': {
    id: 'countMessageTokens',
    tag: 'Messages',
    summary: 'Count the tokens of a conversation',
    headers,
    body: 'MessagesCountRequest',
    errors: 'MessagesError',
    examples: { count: { summary: 'A conversation', value: { model: 'demo', messages: hello } } },
    answers: answered('The number of tokens.', named('MessagesTokenCount', s.open({ input_tokens: s.integer() })), {
      example: { input_tokens: 8 },
    }),
  },
}
