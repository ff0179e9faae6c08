/** OpenAI's Responses API, and what it stores. */
import { s } from '../../core/schema.ts'
import { answered, constant, cursor, listOf, named, orNull, type Parameter, type Rows } from '../row.ts'
import { costDetails, metadata } from './accounting.ts'

const item = named(
  'ResponseItem',
  s.open({
    type: s.string(),
    id: s.optional(orNull(s.string())),
    status: s.optional(orNull(s.string())),
    role: s.optional(s.string()),
    content: s.optional(orNull(s.either(s.string(), s.array(s.open({ type: s.string() }))))),
  }),
)
const usage = s.open({
  input_tokens: s.integer(),
  input_tokens_details: s.open({ cached_tokens: s.integer() }),
  output_tokens: s.integer(),
  output_tokens_details: s.open({ reasoning_tokens: s.integer() }),
  total_tokens: s.integer(),
  cost: s.optional(orNull(s.number())),
  cost_details: s.optional(costDetails),
  info: s.optional(s.string()),
})
const text = orNull(s.string())
const response = named(
  'Response',
  s.open({
    id: s.string(),
    object: constant('response'),
    created_at: s.integer(),
    completed_at: s.optional(orNull(s.integer())),
    status: s.enum('in_progress', 'completed', 'incomplete', 'failed'),
    background: s.boolean(),
    error: orNull(s.open({ code: s.string(), message: s.string() })),
    incomplete_details: orNull(s.open({ reason: s.string() })),
    model: s.string(),
    output: s.array(item),
    previous_response_id: text,
    service_tier: s.optional(text),
    store: s.boolean(),
    usage: orNull(usage),
    gateway: s.optional(metadata),
    instructions: s.optional(s.unknown()),
    max_output_tokens: s.optional(orNull(s.integer())),
    metadata: s.optional(orNull(s.open({}))),
    parallel_tool_calls: s.optional(s.boolean()),
    temperature: s.optional(orNull(s.number())),
    top_p: s.optional(orNull(s.number())),
    tools: s.optional(s.array(s.open({ type: s.string() }))),
    tool_choice: s.optional(s.unknown()),
    truncation: s.optional(text),
    user: s.optional(text),
  }),
)
const event = named(
  'ResponseEvent',
  s.open({
    type: s.string(),
    sequence_number: s.optional(s.integer()),
    response: s.optional(response),
    output_index: s.optional(s.integer()),
    content_index: s.optional(s.integer()),
    item_id: s.optional(s.string()),
    item: s.optional(item),
    delta: s.optional(s.string()),
  }),
)

const id: Readonly<Record<string, Parameter>> = { id: { description: 'The id of a stored response.' } }
const KEPT = 'Responses are stored for projects that keep them, where `store` is true.'

/** Rows by method and path. */
export const responses: Rows = {
  'POST /v1/responses': {
    id: 'createResponse',
    tag: 'Responses',
    summary: "Answer a conversation, in the form of OpenAI's Responses API",
    description: KEPT,
    body: 'ResponseRequest',
    examples: {
      whole: { summary: 'A whole answer', value: { model: 'demo', input: 'Say hello in one word.' } },
      streamed: { summary: 'A streamed answer', value: { model: 'demo', input: 'Say hello.', stream: true } },
      items: {
        summary: 'Turns, and a tool',
        value: {
          model: 'demo',
          instructions: 'Answer briefly.',
          input: [{ role: 'user', content: [{ type: 'input_text', text: 'What is the weather in Paris?' }] }],
          tools: [
            {
              type: 'function',
              name: 'get_weather',
              parameters: { type: 'object', properties: { city: { type: 'string' } } },
            },
          ],
        },
      },
    },
    answers: answered(
      'The answer. With `stream: true`: server-sent events, the last of which holds the response.',
      response,
      { stream: event, links: ['getResponse', 'listResponseInputItems', 'deleteResponse'] },
    ),
  },
  'GET /v1/responses/{id}': {
    id: 'getResponse',
    tag: 'Responses',
    summary: 'Read a stored response',
    path: id,
    query: { stream: { description: 'Only `false`: a stored response is complete.' } },
    answers: answered('The response.', response),
  },
  'DELETE /v1/responses/{id}': {
    id: 'deleteResponse',
    tag: 'Responses',
    summary: 'Remove a stored response',
    path: id,
    answers: answered(
      'The response is removed.',
      named('DeletedResponse', s.open({ id: s.string(), object: constant('response'), deleted: constant(true) })),
    ),
  },
  'GET /v1/responses/{id}/input_items': {
    id: 'listResponseInputItems',
    tag: 'Responses',
    summary: 'List what a stored response answers',
    path: id,
    query: cursor,
    answers: answered('Items, newest first.', named('ResponseItemList', listOf(item))),
  },
  'POST /v1/responses/{id}/cancel': {
    id: 'cancelResponse',
    tag: 'Responses',
    summary: 'Refuse to cancel a response: none runs in the background',
    path: id,
    answers: {},
  },
}
