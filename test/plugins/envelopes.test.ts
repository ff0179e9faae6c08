/** Answers by tool that a model wraps in one member, on every wire whose schemas are emulated by a tool. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Frame } from '../../src/core/wire.ts'
import type { Json } from '../../src/json/json.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { target } from './wire-kit.ts'

const [messages, vertex] = anthropic.wires
const [converse] = bedrock.wires
const piecesOf = (json: string) => json.match(/.{1,7}/gs) ?? []
const frame = (data: Json, name?: string): Frame => ({ data: JSON.stringify(data), name })

const block = { type: 'tool_use', id: 't', name: 'json_answer' }
const start = (input: Json) => frame({ type: 'content_block_start', index: 0, content_block: { ...block, input } })
const claudeEnd = [
  frame({ type: 'content_block_stop', index: 0 }),
  frame({ type: 'message_delta', delta: { stop_reason: 'tool_use' } }),
  frame({ type: 'message_stop' }),
]
const claudeStream = (json: string): Frame[] => [
  frame({ type: 'message_start', message: { id: 'm' } }),
  start({}),
  ...piecesOf(json).map(partial_json =>
    frame({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json } }),
  ),
  ...claudeEnd,
]
const claudeWhole = (json: string): Frame[] => [
  {
    data: `{"type":"message","id":"m","content":[${JSON.stringify(block).slice(0, -1)},"input":${json}}],"stop_reason":"tool_use"}`,
  },
]
const converseStream = (json: string): Frame[] => [
  frame({ contentBlockIndex: 0, start: { toolUse: { toolUseId: 't', name: 'json_answer' } } }, 'contentBlockStart'),
  ...piecesOf(json).map(input => frame({ contentBlockIndex: 0, delta: { toolUse: { input } } }, 'contentBlockDelta')),
  frame({ contentBlockIndex: 0 }, 'contentBlockStop'),
  frame({ stopReason: 'tool_use' }, 'messageStop'),
]
const converseWhole = (json: string): Frame[] => [
  {
    data: `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"json_answer","input":${json}}}]}},"stopReason":"tool_use"}`,
  },
]
const forms = [
  ['anthropic.messages, streamed', messages!, 'stream', claudeStream],
  ['anthropic.messages, whole', messages!, 'unary', claudeWhole],
  ['anthropic.vertex, streamed', vertex!, 'stream', claudeStream],
  ['bedrock.converse, streamed', converse, 'stream', converseStream],
  ['bedrock.converse, whole', converse, 'unary', converseWhole],
] as const

const steps = {
  type: 'object',
  properties: {
    steps: { type: 'array', items: { type: 'string' } },
    note: { type: 'string' },
    at: { type: 'integer' },
  },
  required: ['steps'],
}

/** The answer as a client reads it, or the code of its error. */
function answersOf(json: string, schema: Json): [says: string, answer: string | null][] {
  return forms.map(([says, wire, mode, framesOf]) => {
    const format = { type: 'json_schema', json_schema: { name: 'a', schema } }
    const input = { model: 'm', messages: [], response_format: format } as ChatRequest
    const decoder = wire.decoder(mode, target(), input)
    const events: Event[] = []
    try {
      for (const one of framesOf(json)) events.push(...decoder.frame(one))
      events.push(...decoder.end())
    } catch (thrown) {
      if (thrown instanceof GatewayError) return [says, thrown.code]
      throw thrown
    }
    return [says, events.map(event => (event.type === 'text' ? event.text : '')).join('')]
  })
}

t.test('an envelope of one member is opened where its content fits the schema and the whole does not', async t => {
  const rows: [says: string, json: string, answer: string, schema?: Json][] = [
    ['parameters', '{"parameters":{"steps":["a"]}}', '{"steps":["a"]}'],
    [
      'input, with every digit',
      '{"input":{"at":12345678901234567890,"steps":[]}}',
      '{"at":12345678901234567890,"steps":[]}',
    ],
    ['any name', '{"json_answer":{"steps":["}"]}}', '{"steps":["}"]}'],
    ['content as text', '{"arguments":"{\\"steps\\":[\\"a\\"]}"}', '{"steps":["a"]}'],
    ['a name of the schema', '{"steps":{"steps":["a"]}}', '{"steps":["a"]}'],
    ['no envelope', '{"steps":["a"],"note":"b"}', '{"steps":["a"],"note":"b"}'],
    ['no envelope, with a member more', '{"more":{"steps":[]},"steps":["a"]}', '{"more":{"steps":[]},"steps":["a"]}'],
    ['a schema that takes anything', '{"input":{"steps":[]}}', '{"input":{"steps":[]}}', { type: 'object' }],
    [
      'a schema with that member',
      '{"input":{"steps":["a"]}}',
      '{"input":{"steps":["a"]}}',
      { type: 'object', properties: { input: steps }, required: ['input'] },
    ],
    [
      'a schema behind a reference',
      '{"parameters":{"steps":["a"]}}',
      '{"steps":["a"]}',
      { $ref: '#/$defs/a', $defs: { a: steps } },
    ],
    [
      'a closed schema without required members',
      '{"parameters":{"note":"a"}}',
      '{"note":"a"}',
      { ...steps, required: [], additionalProperties: false },
    ],
  ]
  for (const [says, json, answer, schema = steps] of rows) {
    for (const [form, told] of answersOf(json, schema)) t.equal(told, answer, `${form}: ${says}`)
  }
})

t.test('an envelope whose content does not fit the schema is an error', async t => {
  const plain = ['["a"]', '7', '-1', 'true', 'null'].map(value => `{"parameters":${value}}`)
  const wrapped = ['{"parameters":{"note":"a"}}', '{"input":{"steps":"a"}}', '{"x":{}}', '{"input":"steps"}']
  for (const json of [...wrapped, ...plain]) {
    for (const [form, told] of answersOf(json, steps)) t.equal(told, 'upstream_invalid_response', `${form}: ${json}`)
  }
})

t.test('an answer that is no envelope streams as it comes', async t => {
  const decoder = messages!.decoder('stream', target(), {
    model: 'm',
    messages: [],
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: steps } },
  } as ChatRequest)
  const texts = claudeStream('{"steps":["one","two","three"]}').map(one =>
    decoder.frame(one).flatMap(event => (event.type === 'text' ? event.text : [])),
  )
  t.ok(texts.filter(pieces => pieces.length > 0).length > 2, 'in more than two pieces')
})
