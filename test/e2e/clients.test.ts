/** The official OpenAI client, unmodified, against both provider wires and the demo. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { Child } from '../helpers/child.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'weather',
      description: 'Weather of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
]
const json_schema = {
  name: 'person',
  schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
}
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const ask = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: 'user', content }]
const shipped = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const upstream = await startUpstream(t, { key: upstreamSecret })
const anthropic = {
  base_url: upstream.url('b'),
  auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
  headers: { 'anthropic-version': '2023-06-01' },
  wires: { chat: 'anthropic.messages' },
  models: [
    {
      ...testMapping,
      model: 'claude',
      id: 'claude-1',
      pricing: { prompt: '1', completion: '2', input_cache_read: '0.1', input_cache_write: '1.25' },
    },
  ],
}
const gateway = await startGateway(t, {
  providers: {
    a: {
      base_url: upstream.url('a'),
      models: [
        { ...testMapping, model: 'gpt', id: 'gpt-1' },
        { ...testMapping, model: 'unpriced', id: 'gpt-0', pricing: undefined },
      ],
    },
    b: anthropic,
    c: {
      base_url: upstream.url('c'),
      wires: { chat: 'openai.responses' },
      models: [{ ...testMapping, model: 'phased', id: 'gpt-5' }],
    },
  },
  config: { server: { public_url: 'https://gateway.example.com/ai' } },
  files: {
    'providers.d/demo.yaml': shipped('providers.d/demo.yaml'),
    'config/models.d/demo.yaml': shipped('config/models.d/demo.yaml'),
  },
})
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })

/** The same request is served by an upstream of either wire: the client cannot tell which. */
const wires = [
  { model: 'gpt', prefix: 'a', wire: 'openai.chat' },
  { model: 'claude', prefix: 'b', wire: 'anthropic.messages' },
] as const
const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)

/** Reads a stream to its end: what a user of the client would put together from the chunks. */
async function collect(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const calls: { id: string; name: string; args: string }[] = []
  let text = ''
  let reasoning = ''
  let reasoningContent = ''
  let finish: string | null = null
  let last: OpenAI.ChatCompletionChunk | undefined
  for await (const chunk of stream) {
    last = chunk
    const choice = chunk.choices[0]
    text += choice?.delta.content ?? ''
    const delta = choice?.delta as { reasoning?: string; reasoning_content?: string } | undefined
    reasoning += delta?.reasoning ?? ''
    reasoningContent += delta?.reasoning_content ?? ''
    finish = choice?.finish_reason ?? finish
    for (const call of choice?.delta.tool_calls ?? []) {
      calls[call.index] ??= { id: '', name: '', args: '' }
      calls[call.index]!.id += call.id ?? ''
      calls[call.index]!.name += call.function?.name ?? ''
      calls[call.index]!.args += call.function?.arguments ?? ''
    }
  }
  return {
    text,
    reasoning,
    reasoningContent,
    calls,
    finish,
    last: last as OpenAI.ChatCompletionChunk & { metadata: Record<string, unknown> },
  }
}

for (const { model, prefix, wire } of wires) {
  t.test(`${wire}: a whole answer has content, usage, cost and metadata`, async t => {
    await play(prefix, { text: 'Hello there', usage: { prompt: 100, completion: 20, cached: 40, written: 0 } })
    const answer = await client.chat.completions.create({ model, messages: ask('Hi') })
    const { usage, metadata } = answer as unknown as {
      usage: Record<string, unknown>
      metadata: Record<string, unknown>
    }
    t.match(answer, {
      object: 'chat.completion',
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
    })
    t.match(usage, {
      prompt_tokens: 100,
      completion_tokens: 20,
      total_tokens: 120,
      prompt_tokens_details: { cached_tokens: 40 },
    })
    const read = prefix === 'b' ? 40 * 0.1 : 40
    t.equal(usage.cost, Number(((60 + read + 40) / 1e6).toFixed(9)))
    t.match(metadata, {
      requested_model: model,
      requested_provider: null,
      used_model: model,
      used_provider: prefix,
      underlying_used_model: `${model}-1`,
    })
    t.match(metadata.routing, [
      { provider: prefix, model, status_code: 200, error_type: 'none', succeeded: true, credentialSource: 'platform' },
    ])
  })

  t.test(`${wire}: a stream ends with usage, metadata and the terminator`, async t => {
    await play(prefix, { chunks: ['Hel', 'lo ', '🙂'], usage: { prompt: 10, completion: 3 } })
    const { text, finish, last } = await collect(
      await client.chat.completions.create({ model, messages: ask('Hi'), stream: true }),
    )
    t.equal(text, 'Hello 🙂')
    t.equal(finish, 'stop')
    t.match(last, {
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13, cost: 0.000016 },
      metadata: { used_provider: prefix },
    })
  })

  t.test(`${wire}: parallel tool calls come whole and streamed, and their results go back`, async t => {
    const step: Step = {
      toolCalls: [
        { name: 'weather', args: { city: 'Oslo' } },
        { name: 'weather', args: { city: 'Rome' } },
      ],
    }
    await play(prefix, step)
    const whole = await client.chat.completions.create({ model, messages: ask('Weather?'), tools })
    const message = whole.choices[0]!.message
    t.equal(message.content, null)
    t.equal(whole.choices[0]!.finish_reason, 'tool_calls')
    const args = (message.tool_calls ?? []).map(call => call.type === 'function' && JSON.parse(call.function.arguments))
    t.strictSame(args, [{ city: 'Oslo' }, { city: 'Rome' }])

    const streamed = await collect(
      await client.chat.completions.create({ model, messages: ask('Weather?'), tools, stream: true }),
    )
    t.equal(streamed.finish, 'tool_calls')
    t.strictSame(
      streamed.calls.map(call => [call.name, JSON.parse(call.args)]),
      [
        ['weather', { city: 'Oslo' }],
        ['weather', { city: 'Rome' }],
      ],
    )
    t.equal(new Set(streamed.calls.map(call => call.id)).size, 2)

    await play(prefix, { text: 'Cold and warm' })
    const results = message.tool_calls!.map(call => ({ role: 'tool' as const, tool_call_id: call.id, content: '20' }))
    const next = await client.chat.completions.create({
      model,
      messages: [...ask('Weather?'), message, ...results],
      tools,
    })
    t.equal(next.choices[0]!.message.content, 'Cold and warm')
  })

  t.test(`${wire}: structured output and images reach the provider`, async t => {
    await upstream.reset()
    await play(prefix, { text: '{"name":"Ada"}' })
    const answer = await client.chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Who?' },
            { type: 'image_url', image_url: { url: pixel } },
          ],
        },
      ],
      response_format: { type: 'json_schema', json_schema },
    })
    t.strictSame(JSON.parse(answer.choices[0]!.message.content!), { name: 'Ada' })
    const [entry] = await upstream.record(prefix)
    t.equal(entry!.refused, null)
    t.match(JSON.stringify(entry!.body), /json_schema/)
    t.match(JSON.stringify(entry!.body), /iVBORw0KGgo/)
    t.strictSame(entry!.violations, [])
  })

  t.test(`${wire}: reasoning is apart from content, whole and streamed`, async t => {
    await play(prefix, { reasoning: 'Let me think', text: 'Done', usage: { prompt: 5, completion: 9, reasoning: 4 } })
    const whole = await client.chat.completions.create({ model, messages: ask('Hi'), reasoning_effort: 'low' })
    const said = { reasoning: 'Let me think', reasoning_content: 'Let me think' }
    t.match(whole.choices[0]!.message, { content: 'Done', ...said })
    const streamed = await collect(
      await client.chat.completions.create({ model, messages: ask('Hi'), reasoning_effort: 'low', stream: true }),
    )
    t.match(streamed, { text: 'Done', reasoning: 'Let me think', reasoningContent: 'Let me think' })
    t.match(streamed.last.usage, { completion_tokens: 9 })
  })

  t.test(`${wire}: prompt tokens include cached and written ones, and cost the same streamed and whole`, async t => {
    await play(prefix, { text: 'ok', usage: { prompt: 1000, completion: 2, cached: 300, written: 500 } })
    const whole = await client.chat.completions.create({ model, messages: ask('Hi') })
    const streamed = await collect(await client.chat.completions.create({ model, messages: ask('Hi'), stream: true }))
    t.match(whole.usage, { prompt_tokens: 1000, prompt_tokens_details: { cached_tokens: 300 } })
    t.strictSame(streamed.last.usage, whole.usage)
  })
}

/** What the client's own accumulator makes of a stream that the provider answers so. */
async function accumulated(prefix: string, model: string, events: object[], over: object = {}) {
  const bytes = events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
  await play(prefix, { headers: { 'content-type': 'text/event-stream' }, raw: [bytes] })
  const stream = client.chat.completions.stream({ model, messages: ask('Hi'), ...over })
  const { choices, ...rest } = await stream.finalChatCompletion()
  return { message: choices[0]!.message, rest: rest as typeof rest & { provider: string } }
}

t.test('the accumulator of the client keeps all citations, and who answered', async t => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: 'x1',
    system_fingerprint: 'fp_1',
    choices: [{ index: 0, delta, finish_reason }],
  })
  const cited = (url: string, start_index: number, end_index: number) => ({
    type: 'url_citation',
    url_citation: { url, title: 'T', start_index, end_index },
  })
  const [one, two] = [cited('https://a.example/', 0, 3), cited('https://a.example/', 5, 8)]
  const { message, rest } = await accumulated('a', 'gpt', [
    chunk({ role: 'assistant', content: 'One' }),
    chunk({ annotations: [one] }),
    chunk({ content: ', two' }),
    chunk({ annotations: [two] }),
    chunk({}, 'stop'),
  ])
  t.match(message, { content: 'One, two', annotations: [one, two] })
  t.match(rest, { system_fingerprint: 'fp_1', provider: 'a' })
})

t.test('a two-phase answer goes back as it came, whatever the client joined of its stream', async t => {
  const said = (output_index: number, phase: string, text: string) => [
    { type: 'response.output_item.added', output_index, item: { type: 'message', id: `m${output_index}`, phase } },
    { type: 'response.output_text.delta', output_index, content_index: 0, delta: text.slice(0, 4) },
    { type: 'response.output_text.delta', output_index, content_index: 0, delta: text.slice(4) },
    {
      type: 'response.output_item.done',
      output_index,
      item: { type: 'message', id: `m${output_index}`, phase, content: [{ type: 'output_text', text }] },
    },
  ]
  const called = { type: 'function_call', id: 'fc', call_id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' }
  const { message } = await accumulated(
    'c',
    'phased',
    [
      ...said(0, 'commentary', 'Let me look.'),
      { type: 'response.output_item.done', output_index: 1, item: called },
      ...said(2, 'final_answer', 'It is cold.'),
      { type: 'response.completed', response: { id: 'r', model: 'm', status: 'completed', output: [] } },
    ],
    { tools },
  )
  t.match(message, { phase: 'final_answer', content_before_tool_calls: true })
  const spoken = (phase: string, text: string) => ({
    role: 'assistant',
    phase,
    content: [{ type: 'output_text', text }],
  })
  const joined = { ...message, phase: 'commentaryfinal_answer' }
  const items = (message as unknown as { message_items: object[] }).message_items
  for (const turn of [message, joined, { ...joined, message_items: [...items, ...items] }]) {
    await upstream.reset()
    await play('c', { text: 'Bye' })
    const result = { role: 'tool', tool_call_id: 'call_1', content: '20' } as const
    const messages = [...ask('Hi'), turn as typeof message, result, ...ask('So?')]
    await client.chat.completions.create({ model: 'phased', messages, tools })
    const [entry] = await upstream.record('c')
    t.match((entry!.body as { input: object[] }).input.slice(1, 4), [
      spoken('commentary', 'Let me look.'),
      { type: 'function_call', call_id: 'call_1' },
      spoken('final_answer', 'It is cold.'),
    ])
    t.equal((entry!.body as { input: object[] }).input.length, 6)
  }
})

t.test('the catalogue lists through the client', async t => {
  const ids: string[] = []
  for await (const model of await client.models.list()) ids.push(model.id)
  const { models: demo } = parse(shipped('config/models.d/demo.yaml')) as { models: { id: string }[] }
  const known = [...demo.map(({ id }) => id), 'claude', 'gpt', 'phased']
  t.strictSame(ids.sort(), known.sort(), 'without what this key cannot call')
})

t.test('each refusal surfaces as the class that the client has for its status, with our code', async t => {
  const chat = (over: object, key = gateway.key) =>
    new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 }).chat.completions.create({
      model: 'gpt',
      messages: ask('Hi'),
      ...over,
    })
  await upstream.script('a', [{ fault: 'refuse' }])
  const cases = [
    [() => chat({ messages: [] }), OpenAI.BadRequestError, 400, 'invalid_parameters'],
    [() => chat({ n: 2 }), OpenAI.BadRequestError, 400, 'model_not_supported'],
    [() => chat({ model: 'unpriced' }), OpenAI.APIError, 402, 'billing_error'],
    [() => chat({}, 'mgw_wrong'), OpenAI.AuthenticationError, 401, 'invalid_api_key'],
    [() => chat({ model: 'nope' }), OpenAI.NotFoundError, 404, 'model_not_found'],
    [() => chat({}), OpenAI.InternalServerError, 502, 'fetch_failed'],
  ] as const
  for (const [call, kind, status, code] of cases) {
    const error = await call().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    t.ok(error instanceof kind, `${status} is ${kind.name}`)
    t.match(error, { status, code })
  }

  const settings = parse(await readFile(gateway.configPath, 'utf8'))
  const limited = { ...settings, endpoints: { chat: { ratelimit: { rpm: 1 } } } }
  await gateway.writeFile('config/gateway.yaml', stringify(limited))
  await gateway.admin('POST', '/reload')
  const error = await chat({ model: 'demo' }).catch((thrown: unknown) => thrown)
  await gateway.writeFile('config/gateway.yaml', stringify(settings))
  await gateway.admin('POST', '/reload')
  t.ok(error instanceof OpenAI.RateLimitError)
  t.match(error, { status: 429, code: 'rate_limit_exceeded', headers: Headers })
  const { headers } = error as InstanceType<typeof OpenAI.RateLimitError>
  t.match(headers.get('retry-after'), /^[1-9]\d*$/)
  t.equal(headers.get('ratelimit-policy'), '"requests";q=1;w=60')
})

t.test('compat options of the chat endpoint apply on reload, and unknown ones are refused', async t => {
  const settings = parse(await readFile(gateway.configPath, 'utf8'))
  const reloaded = async (compat: object) => {
    const { ratelimit } = settings.endpoints?.chat ?? {}
    const chat = { ...(ratelimit && { ratelimit }), compat }
    await gateway.writeFile('config/gateway.yaml', stringify({ ...settings, endpoints: { chat } }))
    return gateway.admin('POST', '/reload')
  }
  const keys = async () => {
    const { choices } = await client.chat.completions.create({ model: 'gpt', messages: ask('Hi') })
    return Object.keys(choices[0]!.message).filter(key => key.startsWith('reasoning'))
  }
  await play('a', { reasoning: 'hm', text: 'Done' })
  t.strictSame(await keys(), ['reasoning', 'reasoning_content'], 'both names by default')
  t.equal((await reloaded({ reasoning_content: false })).status, 200)
  t.strictSame(await keys(), ['reasoning'])
  const refused = await reloaded({ reasoning_contents: false })
  t.match(await refused.text(), /unknown key \\"reasoning_contents\\"; did you mean \\"reasoning_content\\"/)
  t.strictSame(await keys(), ['reasoning'], 'a refused file changes nothing')
  await gateway.writeFile('config/gateway.yaml', stringify(settings))
  await gateway.admin('POST', '/reload')
  t.strictSame(await keys(), ['reasoning', 'reasoning_content'])
})

t.test('the demo answers, calls tools, writes JSON, reasons and cites', async t => {
  const whole = (over: object) =>
    client.chat.completions.create({ model: 'demo', messages: ask('Hello'), ...over, stream: false })
  t.match((await whole({})).choices[0]!.message.content, /simulated.*Hello/)
  t.match((await whole({ tools })).choices[0], {
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { name: 'weather' } }] },
  })
  const structured = await whole({ response_format: { type: 'json_schema', json_schema } })
  t.strictSame(Object.keys(JSON.parse(structured.choices[0]!.message.content!)), ['name'])
  t.ok(JSON.parse((await whole({ response_format: { type: 'json_object' } })).choices[0]!.message.content!))
  t.match((await whole({ reasoning_effort: 'high' })).choices[0]!.message, { reasoning: /simulated/ })
  t.match((await whole({ web_search: true })).choices[0]!.message, { annotations: [{ type: 'url_citation' }] })
})

t.test('the curl line of the first start works as printed, also streamed, wherever clients come from', async t => {
  t.match(gateway.stdout(), `listens on   ${gateway.url}\n  public URL   https://gateway.example.com/ai\n`)
  const { execFileSync } = await import('node:child_process')
  const line = gateway
    .stdout()
    .split('\n')
    .find(text => text.trim().startsWith('curl '))!
  t.match(JSON.parse(execFileSync('sh', ['-c', line], { encoding: 'utf8' })), { object: 'chat.completion' })
  const streamed = execFileSync('sh', ['-c', line.replace('"model"', '"stream":true,"model"')], { encoding: 'utf8' })
  t.match(streamed, /data: \[DONE\]\n\n$/)
})

t.test('a start that fails makes no key: the next start makes and prints it', async t => {
  const script = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url))
  const start = async (listen: string) => {
    const server = { listen, admin: '127.0.0.1:0' }
    const settings = { ...parse(shipped('config/gateway.yaml')), server, stores: { sqlite: '../data/first.db' } }
    await gateway.writeFile('config/first.yaml', stringify(settings))
    const args = ['--config', join(gateway.dir, 'config/first.yaml')]
    return new Child(script, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const refused = await start(`127.0.0.1:${gateway.port}`)
  t.equal(await refused.exited, 1)
  t.match(refused.stderr, /is in use/)
  const second = await start('127.0.0.1:0')
  t.teardown(() => second.kill('SIGTERM'))
  while (second.running && !second.stdout.includes('curl ')) await new Promise(resolve => setTimeout(resolve, 10))
  t.match(second.stdout, /Your API key, shown only this once:\n\n {2}mgw_/)
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
