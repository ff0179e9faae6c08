/** `POST /v1/responses` as the unmodified `openai` client speaks it, over every provider wire. */
import OpenAI from 'openai'
import t from 'tap'
import type { Step } from '../helpers/upstream.ts'
import { everyWire } from './matrix/gateway.ts'
import { wires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const play = async (prefix: string, ...steps: Step[]) => {
  await upstream.reset()
  await upstream.script(prefix, steps)
}
const usage = { prompt: 11, completion: 3 }
const weather: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'weather',
  description: 'Tells it',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}

for (const { id } of wires) {
  t.test(`${id}: an answer is whole or a stream that the client accumulates`, async t => {
    await play(id, { text: 'Hello there', usage }, { text: 'Hello there', usage })
    const whole = await client.responses.create({ model: id, input: 'Hi', instructions: 'Be brief' })
    t.match(whole, { status: 'completed', output_text: 'Hello there', store: false, error: null })
    t.match(whole.id, /^resp_/)
    t.equal(whole.usage?.input_tokens, 11)
    const seen: { type: string; sequence_number: number }[] = []
    const stream = client.responses.stream({ model: id, input: 'Hi' })
    stream.on('event', event => void seen.push(event))
    const final = await stream.finalResponse()
    t.equal(final.output_text, 'Hello there')
    t.strictSame(
      seen.map(event => event.sequence_number),
      seen.map((_, place) => place),
    )
    t.match(seen.slice(0, 2), [{ type: 'response.created' }, { type: 'response.in_progress' }])
    t.equal(seen.at(-1)?.type, 'response.completed')
  })

  t.test(`${id}: calls go out and their outputs come back with the reasoning`, async t => {
    const toolCalls = ['Oslo', 'Bergen'].map(city => ({ name: 'weather', args: { city } }))
    await play(id, { reasoning: 'Two places', toolCalls, usage }, { text: 'Cold', usage })
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Weather?' }]
    const thinks = { model: id, tools: [weather], reasoning: { effort: 'low' as const } }
    const first = await client.responses.stream({ ...thinks, input }).finalResponse()
    const calls = first.output.filter(item => item.type === 'function_call')
    t.strictSame(
      calls.map(({ name, arguments: args }) => [name, JSON.parse(args)]),
      [
        ['weather', { city: 'Oslo' }],
        ['weather', { city: 'Bergen' }],
      ],
    )
    t.ok(first.output.every(item => item.type !== 'reasoning' || item.encrypted_content))
    const outputs = calls.map(call => ({ type: 'function_call_output', call_id: call.call_id, output: '-3' }))
    const next = [...input, ...first.output, ...outputs] as OpenAI.Responses.ResponseInput
    const second = await client.responses.create({ ...thinks, input: next })
    t.equal(second.output_text, 'Cold')
  })
}

t.test('a custom tool and a tool of a namespace come back by their own names', async t => {
  const tools = [
    { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
    { type: 'namespace', name: 'mcp', description: '', tools: [{ ...weather, name: 'look.up' }, weather] },
    weather,
  ]
  const toolCalls = [
    { name: 'apply_patch', args: { input: 'x\ny' } },
    { name: 'mcp__look_up', args: { city: 'Oslo' } },
    { name: 'weather', args: {} },
  ]
  await play('claude', { toolCalls, usage })
  const asked = { model: 'claude', input: 'Hi', tools, client_metadata: { a: 'b' }, store: false }
  const answer = (await (await gateway.post('/v1/responses', asked)).json()) as OpenAI.Responses.Response
  t.match(answer.output, [
    { type: 'custom_tool_call', id: /^ctc_/, name: 'apply_patch', input: 'x\ny' },
    { type: 'function_call', name: 'look.up', namespace: 'mcp', arguments: '{"city":"Oslo"}' },
    { type: 'function_call', name: 'weather', arguments: '{}' },
  ])
  t.notOk('namespace' in answer.output[2]!)
})

t.test('a schema is parsed, a length stop is incomplete, and a stream that breaks has failed', async t => {
  await play('chat', { text: '{"a":1}', usage }, { text: 'cut', finish: 'length', usage })
  const format = { type: 'json_schema', name: 'a', schema: { type: 'object' }, strict: true } as const
  const parsed = await client.responses.parse({ model: 'chat', input: 'Hi', text: { format } })
  t.strictSame(parsed.output_parsed, { a: 1 })
  const cut = await client.responses.create({ model: 'chat', input: 'Hi' })
  t.match(cut, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })

  await play('chat', { text: 'Hello there', fault: 'reset', afterChunks: 2 } as Step)
  const seen: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.create({ model: 'chat', input: 'Hi', stream: true })) {
    seen.push(event)
  }
  t.match(seen.at(-1), {
    type: 'response.failed',
    response: { status: 'failed', error: { code: 'server_error' }, output: [{ type: 'message' }] },
  })
})

t.test('names that are made to collide stay different', async t => {
  const inner = ['a.b', 'a-b', 'a_b', 'a b'].map(name => ({ ...weather, name }))
  const tools = [
    { type: 'namespace', name: 'n', description: '', tools: inner },
    { ...weather, name: 'n__a_b' },
  ]
  await play('chat', { text: 'Hi', usage })
  const response = await gateway.post('/v1/responses', { model: 'chat', input: 'Hi', tools })
  t.equal(response.status, 200)
  const { body } = (await upstream.record('chat')).at(-1)!
  const sent = (body as { tools: { function: { name: string } }[] }).tools.map(tool => tool.function.name)
  t.equal(new Set(sent).size, 5)
  t.ok(sent.every(name => /^[\w-]{1,64}$/.test(name)))
})

const refusals: [given: object, param: string, says?: object][] = [
  [{ previous_response_id: 'resp_gone' }, 'previous_response_id', { code: 'previous_response_not_found' }],
  [{ conversation: 'conv_1' }, 'conversation'],
  [{ background: true }, 'background'],
  [{ tools: [{ type: 'file_search', vector_store_ids: [] }] }, 'tools[0].type'],
  [
    { input: [{ type: 'item_reference', id: 'msg_1' }] },
    'input[0].id',
    { message: /is stored; send it, with store: false/ },
  ],
  [{ input: [{ type: 'function_call_output', call_id: 'x', output: 'y' }] }, 'input[0].call_id'],
  [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, 'input[0].content[0].file_id'],
]
t.test('what is not stored, and a tool that no provider serves, is a 400 that names it', async t => {
  await upstream.reset()
  for (const [given, param, says] of refusals) {
    const response = await gateway.post('/v1/responses', { model: 'chat', input: 'Hi', ...given })
    const { error } = (await response.json()) as { error: { param: string; code: string } }
    t.equal(response.status, 400, param)
    t.equal(error.param, param)
    if (says) t.match(error, says)
  }
})

t.test('to a provider of this wire the body goes as it came, and names of namespaces come back', async t => {
  await play('responses', { text: 'Hi', usage })
  const body = {
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'look', namespace: 'mcp', arguments: '{ "a":1 }' },
      { type: 'function_call_output', call_id: 'c1', output: 'cold' },
    ],
    tools: [{ type: 'namespace', name: 'mcp', description: 'MCP', tools: [{ ...weather, name: 'look' }] }],
    metadata: { a: 'b' },
    truncation: 'auto',
  }
  const response = await gateway.post('/v1/responses', { model: 'responses', ...body, store: true, models: null })
  t.equal(response.status, 200, await response.text())
  const sent = (await upstream.record('responses')).at(-1)!.body as Record<string, unknown>
  const { model, store, include, ...rest } = sent
  t.strictSame(rest, body)
  t.equal(store, false)
  t.not(model, undefined)
  t.ok(include === undefined || Array.isArray(include))
})

t.test(
  'what changes the price of an answer is refused where no mapping has it, also to a provider of this wire',
  async t => {
    await play('responses', { text: 'Hi', usage })
    const rows: [fields: object, param: string][] = [
      [{ reasoning: { mode: 'pro' } }, 'reasoning.mode'],
      [{ service_tier: 'flex' }, 'service_tier'],
      [{ tools: [{ type: 'web_search' }] }, 'tools'],
    ]
    for (const [fields, param] of rows) {
      const response = await gateway.post('/v1/responses', { model: 'responses', input: 'Hi', ...fields })
      t.match(await response.json(), { error: { param } }, param)
      t.ok(response.status >= 400 && response.status < 500)
    }
    t.equal((await upstream.record('responses')).length, 0)
  },
)
