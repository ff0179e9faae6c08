/** The official Messages client, unmodified, against upstreams of its own wire and of another. */
import { readFile } from 'node:fs/promises'
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

type Params = Anthropic.MessageCreateParamsNonStreaming
type Answer = Anthropic.Message & { metadata: Record<string, unknown> }

const tools: Anthropic.Tool[] = [
  {
    name: 'weather',
    description: 'Weather of a city',
    input_schema: { type: 'object', properties: { city: { type: 'string' } } },
  },
]
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const upstream = await startUpstream(t, { key: upstreamSecret })
const pricing = {
  ...{ prompt: '1', completion: '2', input_cache_read: '0.1' },
  ...{ input_cache_write: '1.25', input_cache_write_1h: '2' },
}
const gateway = await startGateway(t, {
  providers: {
    a: {
      base_url: upstream.url('a'),
      models: [
        { ...testMapping, model: 'gpt', id: 'gpt-1', pricing },
        { ...testMapping, model: 'unpriced', id: 'gpt-0', pricing: undefined },
        { ...testMapping, model: 'either', id: 'either-1', pricing: { prompt: '0.1', completion: '0.1' } },
      ],
    },
    b: {
      base_url: upstream.url('b'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      headers: { 'anthropic-version': '2023-06-01' },
      native_fields: ['container'],
      wires: { chat: 'anthropic.messages' },
      models: [
        {
          ...testMapping,
          model: 'claude',
          id: 'claude-1',
          pricing,
          reasoning_efforts: ['none', 'low', 'medium', 'high'],
        },
        { ...testMapping, model: 'either', id: 'either-1', pricing },
      ],
    },
  },
})
const client = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
const asked = (params: Partial<Params>): Params => ({
  model: 'claude',
  max_tokens: 1000,
  messages: ask('Hi'),
  ...params,
})
/** An answer with the fields that only the gateway has. */
const known = (answer: Anthropic.Message): Answer => JSON.parse(JSON.stringify(answer))
const create = async (params: Partial<Params>) => known(await client.messages.create(asked(params)))
/** Reads a stream to its end: what the client puts together from its events. */
const stream = async (params: Partial<Params>) => known(await client.messages.stream(asked(params)).finalMessage())
const say = (content: string) => ({ role: 'user' as const, content })
const ask = (content: string): Anthropic.MessageParam[] => [say(content)]

/** The same request is served by an upstream of either wire: the client cannot tell which. */
const wires = [
  { model: 'claude', prefix: 'b', wire: 'anthropic.messages' },
  { model: 'gpt', prefix: 'a', wire: 'openai.chat' },
] as const
const play = async (prefix: string, ...steps: Step[]) => {
  await upstream.reset()
  await upstream.script(prefix, steps)
}
/** Without what each answer has anew, and without what the client's stream reader makes or leaves out. */
function plain({ id: _, metadata: __, ...answer }: Answer & { parsed_output?: unknown }): object {
  const { parsed_output: ___, usage, ...rest } = answer
  const { cost: ____, ...counts } = usage as Answer['usage'] & { cost?: number }
  return JSON.parse(JSON.stringify({ ...rest, usage: counts }).replace(/(toolu|call)_\w+/g, '$1'))
}

for (const { model, prefix, wire } of wires) {
  t.test(`${wire}: a whole answer has content, usage, cost and metadata`, async t => {
    await play(prefix, { text: 'Hello there', usage: { prompt: 100, completion: 20, cached: 40 } })
    const answer = await create({ model })
    t.match(answer, {
      id: /^msg_/,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'Hello there' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 20, cost: 0.000104 },
      metadata: { used_provider: prefix, used_model: model, underlying_used_model: `${model}-1` },
    })
    t.match(answer.metadata.routing, [{ provider: prefix, status_code: 200, succeeded: true }])
  })

  t.test(`${wire}: a stream reads as the whole answer`, async t => {
    await play(prefix, {
      reasoning: 'Let me think',
      chunks: ['Hel', 'lo ', '🙂'],
      toolCalls: [{ name: 'weather', args: { city: 'Oslo' } }, { name: 'weather' }],
      usage: { prompt: 50, completion: 9, reasoning: 4, cached: 10 },
    })
    const thinking = { type: 'adaptive' } as const
    const [whole, streamed] = [await create({ model, tools, thinking }), await stream({ model, tools, thinking })]
    t.strictSame(plain(streamed), plain(whole))
    t.match(whole.content, [
      { type: 'thinking', thinking: 'Let me think' },
      { type: 'text', text: 'Hello 🙂' },
      { type: 'tool_use', name: 'weather', input: { city: 'Oslo' } },
      { type: 'tool_use', name: 'weather', input: {} },
    ])
    t.equal(whole.stop_reason, 'tool_use')
    t.match(streamed.usage, { input_tokens: 40, cache_read_input_tokens: 10, output_tokens: 9 })

    let last: object = {}
    for await (const event of await client.messages.create({ ...asked({ model, tools }), stream: true })) {
      if (event.type === 'message_delta') last = event
    }
    t.match(last, { delta: { stop_reason: 'tool_use' }, usage: whole.usage, metadata: { used_provider: prefix } })
  })

  t.test(`${wire}: results of tools go back, failed ones and pictures too`, async t => {
    const names = [{ city: 'Oslo' }, { city: 'Rome' }].map(args => ({ name: 'weather', args }))
    await play(prefix, { text: 'I look.', toolCalls: names }, { text: 'Cold and warm' })
    const first = await stream({ model, tools })
    const calls = first.content.filter(block => block.type === 'tool_use')
    t.equal(new Set(calls.map(({ id }) => id)).size, 2)
    const results: Anthropic.ToolResultBlockParam[] = [
      {
        type: 'tool_result',
        tool_use_id: calls[0]!.id,
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
        ],
      },
      { type: 'tool_result', tool_use_id: calls[1]!.id, content: 'no such city', is_error: true },
    ]
    const next = await create({
      model,
      tools,
      messages: [
        ...ask('Weather?'),
        { role: 'assistant', content: first.content },
        { role: 'user', content: [...results, { type: 'text', text: 'Well?' }] },
      ],
    })
    t.match(next.content, [{ type: 'text', text: 'Cold and warm' }])
    const last = (await upstream.record(prefix)).at(-1)!
    t.equal(last.refused, null)
    t.match(JSON.stringify(last.body), /iVBORw0KGgo.*no such city|no such city.*iVBORw0KGgo/)
  })

  t.test(`${wire}: thinking is replayed over three turns, also when the model changes on the way`, async t => {
    const steps = ['one 🙂', 'two', 'three'].map(reasoning => ({ reasoning, toolCalls: [{ name: 'weather' }] }))
    await play(prefix, ...steps)
    const messages = ask('Go')
    const thinking = { type: 'adaptive' } as const
    for (let turn = 0; turn < 3; turn++) {
      const call = turn % 2 === 0 ? stream : create
      const { content } = await call({ model, tools, thinking, messages })
      t.match(content, [{ type: 'thinking', thinking: /^(one 🙂|two|three)$/ }, { type: 'tool_use' }])
      const [, use] = content as [unknown, Anthropic.ToolUseBlock]
      messages.push({ role: 'assistant', content })
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'ok' }] })
    }
    const other = wires.find(entry => entry.model !== model)!
    await play(other.prefix, { text: 'Done' })
    t.match((await create({ model: other.model, tools, messages })).content, [{ type: 'text', text: 'Done' }])
    const [foreign] = await upstream.record(other.prefix)
    t.equal(foreign!.refused, null)
    t.notMatch(JSON.stringify(foreign!.body), /thinking|signature|two|three/, 'nobody else sees it')

    // The upstream of the same wire refuses thinking that is not signed as it was.
    await play(prefix, { text: 'Done' })
    t.match((await create({ model, tools, thinking, messages })).content, [{ type: 'text', text: 'Done' }])
    const [own] = await upstream.record(prefix)
    t.equal(JSON.stringify(own!.body).match(/"type":"thinking"/g)?.length ?? 0, prefix === 'b' ? 3 : 0)
  })

  t.test(`${wire}: a stream that breaks is an error, and never looks complete`, async t => {
    const text = 'one two three four'
    const cases: [Step, RegExp][] = [
      [{ text, fault: 'error-event', afterChunks: 2 }, /The provider failed/],
      [{ text, fault: 'truncate' }, /before it was complete/],
      [{ text, fault: 'reset', afterChunks: 2 }, /upstream/],
    ]
    for (const [step, message] of cases) {
      await play(prefix, step)
      const running = client.messages.stream({ model, max_tokens: 9, messages: ask('Hi') })
      let seen = ''
      running.on('text', piece => {
        seen += piece
      })
      const error = await running.finalMessage().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      const says = `${step.fault}`
      t.ok(error instanceof Anthropic.APIError, says)
      t.match((error as Error).message, message, says)
      t.match(error, { error: { type: 'error', error: { type: 'api_error' } } }, says)
      t.ok(text.startsWith(seen) && seen !== '', says)
    }
  })
}

for (const { model, prefix, wire } of wires) {
  t.test(`${wire}: the form of an answer has two names`, async t => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const format = { type: 'json_schema' as const, schema }
    await play(prefix, { text: '{"city":"Oslo"}' })
    const parsed = await client.beta.messages.parse({ ...asked({ model }), output_format: format })
    t.match(parsed.parsed_output, { city: 'Oslo' })
    // The client writes the newer name; others write the older one.
    for (const fields of [{ output_format: format }, { output_config: { format } }]) {
      const response = await gateway.post('/v1/messages', { ...asked({ model }), ...fields })
      t.equal(response.status, 200, await response.text())
    }
    const [one, ...others] = await upstream.record(prefix)
    t.match(JSON.stringify(one!.body), /"city"/)
    t.strictSame(
      others.map(({ body, refused }) => ({ body, refused })),
      Array(2).fill({ body: others[1]!.body, refused: null }),
    )
    t.match(JSON.stringify(others[1]!.body), '"required":["city"]')
  })

  t.test(`${wire}: a client that would keep its conversation in a thread sends all of it instead`, async t => {
    const words = async () => (await upstream.record(prefix)).map(({ body }) => JSON.stringify(body))
    await play(prefix, { toolCalls: [{ name: 'weather', args: { city: 'Oslo' } }] }, { text: 'Cold' })
    const run = () => 'minus five'
    const weather = betaTool({ name: 'weather', description: 'Weather', inputSchema: { type: 'object' }, run })
    const question = { max_tokens: 100, messages: ask('Weather in Oslo?') }
    const last = await client.beta.messages.toolRunner({ model, ...question, tools: [weather] }).runUntilDone()
    t.match(last.content, [{ type: 'text', text: 'Cold' }])
    const [first, second, ...more] = await words()
    t.strictSame(more, [], 'what was refused came to no provider')
    t.match(second, /Weather in Oslo\?.*minus five/)
    t.notMatch(`${first}${second}`, /"thread"/)

    await play(prefix, { text: 'Hello' }, { text: 'You are Ada' })
    const unthreaded = { unsupportedRequestBehavior: 'continue_unthreaded' } as const
    const thread = client.beta.messages.thread({ model, max_tokens: 100, ...unthreaded })
    await thread.send(say('I am Ada'))
    t.match((await thread.send(say('Who am I?'))).content, [{ type: 'text', text: 'You are Ada' }])
    t.match((await words()).at(-1), /I am Ada.*Hello.*Who am I\?/)

    const strict = client.beta.messages.thread({ model, max_tokens: 100 })
    const error = await strict.send(say('Hi')).catch((thrown: unknown) => thrown)
    t.ok(error instanceof Anthropic.ThreadUnsupportedRequestError)
    t.match(error, { status: 400, errorCode: 'thread_unsupported_request' })
  })
}

t.test('an upstream of the same wire gets all that the client sent', async t => {
  await play('b', { text: 'ok' })
  const cache_control = { type: 'ephemeral', ttl: '1h' } as const
  const sent = {
    max_tokens: 100,
    system: [{ type: 'text', text: 'Be brief.', cache_control }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi', cache_control },
          {
            type: 'document',
            source: { type: 'text', media_type: 'text/plain', data: 'd' },
            citations: { enabled: true },
          },
        ],
      },
    ],
    stop_sequences: ['END'],
    top_k: 3,
    tools: [{ ...tools[0]!, cache_control, eager_input_streaming: true }],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    metadata: { user_id: '{"session_id":"s"}' },
    cache_control: { type: 'ephemeral' },
  }
  await gateway.post('/v1/messages', { model: 'claude', ...sent })
  const [entry] = await upstream.record('b')
  const { metadata, ...body } = entry!.body as Record<string, unknown>
  t.match(metadata, { user_id: /^[0-9a-f]{32}$/ }, "end users have the gateway's names")
  t.strictSame({ ...body, metadata: sent.metadata }, { model: 'claude-1', ...sent })
  t.notOk('anthropic-beta' in entry!.headers)
})

t.test('what only one wire can carry goes to a provider of that wire, or is refused by name', async t => {
  await play('a', { text: 'foreign' })
  await upstream.script('b', [{ text: 'native' }])
  const container = { container: 'c1' }
  const text = async (params: object) => JSON.stringify((await create({ model: 'either', ...params })).content)
  t.match(await text({}), 'foreign', 'the cheaper one')
  t.match(await text(container), 'native')
  t.match((await upstream.record('b')).at(-1)!.body, container)
  const cases: [Partial<Params>, RegExp][] = [
    [container, /"container".*anthropic.messages.*openai.chat/],
    [{ tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }, /"tools\[0\]\.type"/],
    [{ tools: [{ type: 'bash_20250124', name: 'bash' }] }, /"tools\[0\]\.type" is "bash_20250124"/],
  ]
  for (const [fields, message] of cases) {
    const error = await create({ model: 'gpt', ...fields }).catch((thrown: unknown) => thrown)
    t.ok(error instanceof Anthropic.BadRequestError)
    t.match(error, { error: { type: 'error', error: { type: 'invalid_request_error', message } } })
  }
})

t.test('what a provider’s own tools did comes back to it as it was, and only that', async t => {
  const searched = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Oslo' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'e==' }],
    },
  ]
  const place = { type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: 'It is cold.' }
  const cold = { type: 'text', text: 'Cold.', citations: [{ ...place, encrypted_index: 'Eo8B==' }] }
  const content = [...searched, cold]
  const body = { id: 'msg_1', type: 'message', role: 'assistant', content, stop_reason: 'end_turn', usage: {} }
  for (const ask of [create, stream]) {
    await play('b', { status: 200, body }, { text: 'ok' }, { text: 'ok' })
    const { content: held } = await ask({})
    t.match(held, [...searched, { ...cold, citations: [{ ...place, encrypted_index: /^mgs1.*Eo8B==$/ }] }])
    const messages = [say('Hi'), { role: 'assistant' as const, content: held }, say('And now?')]
    await create({ messages })
    t.match((await upstream.record('b')).at(-1)!.body, { messages: [{}, { content }, {}] })
    t.notMatch(JSON.stringify((await upstream.record('b')).at(-1)!.body), 'mgs1', 'without the seals')
    await create({ messages: JSON.parse(JSON.stringify(messages).replaceAll('srvtoolu_1', 'srvtoolu_2')) })
    t.match((await upstream.record('b')).at(-1)!.body, { messages: [{}, { content: [{ text: 'Cold.' }] }, {}] })
  }
})

t.test('what no price covers needs a key of one’s own, of whichever provider that may be', async t => {
  await play('b', { text: 'ok' }, { text: 'ok' })
  const servers = { mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'a' }] }
  const betas = {
    headers: { 'anthropic-beta': 'mcp-client-2025-04-04,files-api-2025-04-14,interleaved-thinking-2025-05-14' },
  }
  for (const model of ['claude', 'either']) {
    const error = await client.messages.create(asked({ model, ...servers }), betas).catch((thrown: unknown) => thrown)
    t.ok(error instanceof Anthropic.BadRequestError, model)
    if (model === 'claude') {
      const message = /mcp_servers: not available with the gateway's credentials. Use your own key/
      t.match(error, { error: { type: 'error', error: { type: 'invalid_request_error', message } } })
    }
  }
  t.same(await upstream.record('b'), [], 'no provider was called')
  await client.messages.create(asked({}), betas)
  t.equal((await upstream.record('b')).at(-1)!.headers['anthropic-beta'], 'interleaved-thinking-2025-05-14')

  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'own' })
  const { id: project } = await command<{ id: string }>('projects.create', {
    organization,
    name: 'web',
    mode: 'hybrid',
  })
  const { key } = await command<{ key: string }>('keys.create', { project })
  await command('provider-keys.add', { organization, provider: 'b', secret: upstreamSecret })
  const own = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 })
  t.match(await own.messages.create({ ...asked({}), ...servers }, betas), { content: [{ text: 'ok' }] })
  const { body, headers } = (await upstream.record('b')).at(-1)!
  t.match(body, servers)
  t.equal(headers['anthropic-beta'], 'mcp-client-2025-04-04,files-api-2025-04-14,interleaved-thinking-2025-05-14')
})

t.test('each refusal surfaces as the class that the client has for its status, in its own form', async t => {
  await play('a', { fault: 'refuse' })
  await upstream.script('b', [{ status: 400, body: { type: 'error', error: { type: 'x', message: 'Too odd.' } } }])
  const as = (apiKey: string) => new Anthropic({ baseURL: gateway.url, apiKey, maxRetries: 0 })
  const call = (over: object, key = gateway.key) =>
    as(key).messages.create({ model: 'gpt', max_tokens: 9, messages: ask('Hi'), ...over } as Params)
  const cases = [
    [
      () => call({ messages: [] }),
      Anthropic.BadRequestError,
      400,
      'invalid_request_error',
      /^Invalid request format: /,
    ],
    [() => call({ stop: 'x' }), Anthropic.BadRequestError, 400, 'invalid_request_error', /"stop".*chat\/completions/],
    [() => call({ model: 'claude' }), Anthropic.BadRequestError, 400, 'invalid_request_error', /Too odd/],
    [() => call({}, 'mgw_wrong'), Anthropic.AuthenticationError, 401, 'authentication_error', /key/],
    [() => call({ model: 'unpriced' }), Anthropic.APIError, 402, 'billing_error', /price/],
    [() => call({ model: 'nope' }), Anthropic.NotFoundError, 404, 'not_found_error', /nope/],
    [() => call({}), Anthropic.InternalServerError, 502, 'api_error', /provider/],
  ] as const
  for (const [run, kind, status, type, message] of cases) {
    const error = await run().catch((thrown: unknown) => thrown)
    t.ok(error instanceof kind, `${status} is ${kind.name}`)
    t.match(error, { status, error: { type: 'error', error: { type, message } } })
  }

  const settings = parse(await readFile(gateway.configPath, 'utf8'))
  await gateway.writeFile(
    'config/gateway.yaml',
    stringify({ ...settings, endpoints: { messages: { ratelimit: { rpm: 1 } } } }),
  )
  await gateway.admin('POST', '/reload')
  await call({}).catch(() => undefined)
  const error = await call({}).catch((thrown: unknown) => thrown)
  await gateway.writeFile('config/gateway.yaml', stringify(settings))
  await gateway.admin('POST', '/reload')
  t.ok(error instanceof Anthropic.RateLimitError)
  t.match(error, { status: 429, error: { type: 'error', error: { type: 'rate_limit_error' } } })
})

t.test('a bearer token is a key too', async t => {
  await play('b', { text: 'ok' })
  const bearer = new Anthropic({ baseURL: gateway.url, authToken: gateway.key, apiKey: null, maxRetries: 0 })
  t.match(await bearer.messages.create({ model: 'claude', max_tokens: 9, messages: ask('Hi') }), { type: 'message' })
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
