/** A model that providers of unlike wires serve: what one wire cannot carry goes to another one. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const claudeWith = (secret: string) => ({
  auth: { scheme: 'header', header: 'x-api-key', secret },
  headers: { 'anthropic-version': '2023-06-01' },
  wires: { chat: 'anthropic.messages' },
})
const claude = claudeWith(upstreamSecret)
const odd = (usd: string) => ({ models: [{ ...testMapping, model: 'odd', pricing: { prompt: usd, completion: usd } }] })
const gateway = await startGateway(t, {
  providers: {
    r: {
      base_url: upstream.url('r'),
      wires: { chat: 'openai.responses' },
      models: [{ ...testMapping, id: 'cut', model: 'cut' }],
    },
    a: { base_url: upstream.url('a'), models: [{ ...testMapping, pricing: { prompt: '0.5', completion: '0.5' } }] },
    b: { ...claude, base_url: upstream.url('b'), models: [testMapping] },
    d: { ...claude, base_url: upstream.url('d'), ...odd('0.5') },
    e: { base_url: upstream.url('e'), ...odd('1') },
    f: { base_url: upstream.url('f'), ...odd('2') },
    c: {
      ...claude,
      base_url: upstream.url('c'),
      models: [{ ...testMapping, pricing: { prompt: '9', completion: '9' } }],
    },
  },
})
const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex')
const messages = [{ role: 'user', content: 'hi' }]
const call = { id: 'c', type: 'custom', custom: { name: 'f', input: 'a' } }
/** Claude has no calls of custom tools. */
const bad = {
  messages: [
    ...messages,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
  ],
}

t.test('a call that one wire cannot carry', async t => {
  await upstream.script('e', [{ text: 'yes' }])
  t.equal((await gateway.chat({ model: 'odd', ...bad })).status, 200)
  await upstream.script('e', [{ status: 503, body: { error: { message: 'Overloaded' } } }])
  t.equal((await gateway.chat({ model: 'odd', ...bad })).status, 200, 'the third one is asked')
  const refused = await gateway.chat({ model: 'd/odd', ...bad }, { 'x-no-fallback': 'true' })
  t.equal(refused.status, 400, 'nobody else may be asked')
})

t.test('a number beyond 2^53 in the arguments of a call arrives as it left, in both directions', async t => {
  const [exact, rounded] = ['12345678901234567890', '12345678901234567000']
  const answer = `{"id":"m","type":"message","role":"assistant","model":"x","stop_reason":"tool_use",
    "content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"id":${exact}}}],"usage":{"input_tokens":1,"output_tokens":1}}`
  await upstream.script('b', [{ body: answer }])
  const ask = (messages: object[]) =>
    gateway.chat({ model: 'b/test', messages, tools: [{ type: 'function', function: { name: 'f' } }] })
  type Answer = { choices: { message: { tool_calls: { function: { arguments: string } }[] } }[] }
  const { message } = ((await (await ask(messages)).json()) as Answer).choices[0]!
  t.equal(message.tool_calls[0]!.function.arguments, `{"id":${exact}}`)
  await ask([...messages, message, { role: 'tool', tool_call_id: 'toolu_1', content: 'ok' }])
  const { body, sha256 } = (await upstream.record('b')).at(-1)!
  const sent = JSON.stringify(body).replace(rounded, exact)
  t.match(sent, exact)
  t.equal(sha256Of(sent), sha256)
  // To a Messages client and back, on the same wire and on another one.
  const native = await gateway.post('/v1/messages', { model: 'b/test', max_tokens: 10, messages })
  t.match(await native.text(), `"input":{"id":${exact}}`)
  const history = (model: string) => `{"model":"${model}","max_tokens":10,"metadata":{"user_id":"u"},"messages":[
    {"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"id":${exact}}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}]}`
  await gateway.post('/v1/messages', history('b/test'))
  const passed = (await upstream.record('b')).at(-1)!
  t.equal(sha256Of(JSON.stringify(passed.body).replace(rounded, exact)), passed.sha256)
  await gateway.post('/v1/messages', history('a/test'))
  t.match(JSON.stringify((await upstream.record('a')).at(-1)!.body), `{\\"id\\":${exact}}`)
})

const keys = 'sk-key-one,sk-key-two,sk-key-three'

t.test('requests that no wire can carry take nothing from the retries of others', async t => {
  const alone = await startGateway(t, {
    providers: { k: { ...claudeWith(keys), base_url: upstream.url('k') } },
  })
  const good = async () => {
    await upstream.script('k', [{ status: 503, body: { error: { message: 'no' } } }, { text: 'yes' }])
    return (await alone.chat({ model: 'test', messages })).status
  }
  t.equal(await good(), 200, 'before')
  for (let i = 0; i < 5; i++) t.equal((await alone.chat({ model: 'test', ...bad })).status, 400)
  await upstream.reset()
  t.equal(await good(), 200, 'after')
})

t.test('offers whose wire cannot carry a request count for no attempt', async t => {
  const priced = (usd: string) => ({ models: [{ ...testMapping, pricing: { prompt: usd, completion: usd } }] })
  const many = await startGateway(t, {
    providers: {
      e: { ...claude, base_url: upstream.url('e'), ...priced('1') },
      f: { ...claude, base_url: upstream.url('f'), ...priced('2') },
      g: { ...claude, base_url: upstream.url('g'), ...priced('3') },
      h: { base_url: upstream.url('h'), ...priced('4') },
    },
  })
  await upstream.script('h', [{ text: 'yes' }])
  t.equal((await many.chat({ model: 'test', ...bad })).status, 200)
})

t.test('a stop sequence ends the answer of a wire without such a field, for every client', async t => {
  const chunks = ['one ST', 'OP two']
  const ask = (path: string, body: object) => gateway.post(path, { model: 'cut', ...body })
  const clients: [path: string, body: object, stops: RegExp][] = [
    [
      '/v1/messages',
      { messages, max_tokens: 99, stop_sequences: ['STOP'] },
      /"stop_reason":"stop_sequence","stop_sequence":"STOP"/,
    ],
    ['/v1/completions', { prompt: 'hi', stop: 'STOP' }, /"finish_reason":"stop"/],
    ['/v1/responses', { input: 'hi', stop: ['STOP'] }, /"status":"completed"/],
    [
      '/v1beta/models/cut:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { stopSequences: ['STOP'] } },
      /"finishReason":"STOP"/,
    ],
  ]
  for (const [path, body, stops] of clients) {
    for (const stream of [false, true]) {
      await upstream.script('r', [{ chunks }])
      const isGoogle = path.startsWith('/v1beta')
      const url = isGoogle && stream ? `${path.replace('generate', 'streamGenerate')}?alt=sse` : path
      const response = await ask(url, { ...body, ...(!isGoogle && { stream }) })
      const said = await response.text()
      t.equal(response.status, 200, said)
      t.match(said, stops, `${path} ${stream}`)
      // As a word: ids are random letters.
      t.notMatch(said, /\btwo\b|"[^"]*ST"/, `${path} ${stream}`)
      const { body: sent } = (await upstream.record('r')).at(-1)!
      t.notOk('stop' in (sent as object))
    }
  }
})
