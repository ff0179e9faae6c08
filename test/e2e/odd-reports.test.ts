/** What is charged where a provider's report is odd, and where the ledger cannot be written at the end of a stream. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { lockBooks, openBooks, readBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const anthropic = {
  base_url: upstream.url('c'),
  wires: { chat: 'anthropic.messages' },
  auth: { scheme: 'none' },
  headers: { 'anthropic-version': '2023-06-01' },
}
const pricing = { prompt: '1', completion: '2', input_cache_read: '0.1', input_cache_write: '1.25' }
const providers = {
  a: { base_url: upstream.url('a') },
  c: { ...anthropic, models: [{ ...testMapping, model: 'claude', id: 'claude-1', pricing }] },
}
const messages = [{ role: 'user', content: 'x'.repeat(44) }]
type Usage = { prompt_tokens: number; completion_tokens: number; cost: number | null; info?: string }

t.test('an odd report makes nothing free, and charges nothing twice', async t => {
  const gateway = await startGateway(t, { providers })
  const books = openBooks(t, gateway)
  const ask = async (prefix: string, body: object, request: object = {}) => {
    await upstream.script(prefix, [{ body }])
    const response = await gateway.chat({ model: prefix === 'a' ? 'test' : 'claude', messages, ...request })
    const { usage, metadata } = (await response.json()) as { usage: Usage; metadata: { log_id: string } }
    const row = books.prepare('SELECT cost, charged FROM requests WHERE id = ?').get(metadata.log_id)
    return { usage, row }
  }
  const answer = (usage: unknown, more = {}) => ({
    choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(20) }, finish_reason: 'stop' }],
    usage,
    ...more,
  })
  const whole = { prompt_tokens: 1000, completion_tokens: 500 }
  const cited = await ask('a', answer(whole, { citations: ['https://a.example'] }))
  t.match(cited, { usage: { cost: 0.002 }, row: { cost: 2e6, charged: 2e6 } }, 'a search that nobody asked for')
  for (const prompt of [undefined, null, '12', -3]) {
    const { usage } = await ask('a', answer({ prompt_tokens: prompt, completion_tokens: 5 }))
    t.match(usage, { prompt_tokens: 11, completion_tokens: 5, info: /estimated/ }, `a prompt of ${prompt} tokens`)
  }
  const half = await ask('a', answer({ prompt_tokens: 12 }))
  t.match(half.usage, { prompt_tokens: 12, completion_tokens: 5, info: /estimated/ })

  const refused = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'claude-1',
    content: [],
    stop_reason: 'refusal',
  }
  const refusal = await ask('c', { ...refused, usage: { input_tokens: 1000, output_tokens: 1 } })
  t.match(refusal, { usage: { prompt_tokens: 1000, cost: 0 }, row: { charged: 0 } }, 'a refusal before any output')

  const usage = (cache_creation_input_tokens: number, cache_read_input_tokens: number) => ({
    ...{ input_tokens: 10, output_tokens: 1, cache_creation_input_tokens, cache_read_input_tokens },
  })
  const events = [
    { type: 'message_start', message: { id: 'm1', type: 'message', usage: usage(5000, 0) } },
    { type: 'message_start', message: { id: 'm2', type: 'message', usage: usage(0, 5000) } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
  const raw = [events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')]
  await upstream.script('c', [{ headers: { 'content-type': 'text/event-stream' }, raw }])
  const text = await (await gateway.chat({ model: 'claude', stream: true, messages })).text()
  t.match(text, '"cost":0.000516', 'C30: the message that was begun anew is charged, not the first one too')
})

t.test('an estimate costs no more than the limit that was sent', async t => {
  const gateway = await startGateway(t, { providers })
  const books = openBooks(t, gateway)
  const indented = JSON.stringify({ a: ' '.repeat(24_000) })
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: indented } }
  const answered = { tool_calls: [call] }
  const whole = {
    body: { choices: [{ index: 0, message: { role: 'assistant', ...answered }, finish_reason: 'tool_calls' }] },
  }
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const raw = [chunk(answered, null), chunk({}, 'tool_calls'), 'data: [DONE]\n\n']
  for (const [stream, step] of [
    [false, whole],
    [true, { headers: { 'content-type': 'text/event-stream' }, raw }],
  ] as const) {
    await upstream.script('a', [step])
    const tools = [{ type: 'function', function: { name: 'f' } }]
    const answer = await gateway.chat({ model: 'test', stream, messages, tools, max_tokens: 1500 })
    t.match(await answer.text(), /"completion_tokens":1500,/, `stream: ${stream}`)
  }
  const rows = books.prepare('SELECT completion_tokens AS tokens, charged FROM requests').all() as {
    tokens: number
    charged: number
  }[]
  t.strictSame(
    rows.map(({ tokens }) => tokens),
    [1500, 1500],
  )
  for (const { charged } of rows) t.ok(charged >= 3_000_000 && charged < 3_100_000, `${charged}`)
})

/** A request on each client wire, by its path. */
const clients: readonly [path: string, body: object, headers?: Record<string, string>][] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'Hi' }],
  ['/v1/messages', { messages, max_tokens: 5 }],
  ['/v1/responses', { input: 'Hi' }],
  ['/v1beta/models/MODEL:', { contents: [{ parts: [{ text: 'Hi' }] }] }],
  ['/v3/ai/language-model', { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] }],
]

t.test('every client wire marks an estimate, and says a limit that was raised', async t => {
  const wires = { chat: 'openai.responses' }
  const offered = [{ ...testMapping, model: 'raised', id: 'r', pricing }]
  const gateway = await startGateway(t, {
    providers: { a: { base_url: upstream.url('a') }, r: { base_url: upstream.url('r'), wires, models: offered } },
  })
  const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }
  const response = { id: 'r', status: 'completed', output: [message], usage: { input_tokens: 3, output_tokens: 2 } }
  const ask = async (row: (typeof clients)[number], model: string, stream: boolean, more: object = {}) => {
    const [path, body] = row
    const isGemini = path.endsWith(':')
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    const at = isGemini ? path.replace('MODEL', model) + method : path
    const headers = {
      'ai-language-model-id': model,
      'ai-language-model-streaming': String(stream),
      'ai-language-model-specification-version': '3',
      'ai-gateway-protocol-version': '0.0.1',
    }
    const isOpen = isGemini || path.includes('/ai/')
    const answer = await gateway.post(
      at,
      { ...body, ...(!isOpen && { model, stream }), ...more },
      isOpen ? headers : {},
    )
    return answer.text()
  }
  const limited: Readonly<Record<string, object>> = {
    '/v1beta/models/MODEL:': { generationConfig: { maxOutputTokens: 5 } },
    '/v3/ai/language-model': { maxOutputTokens: 5 },
  }
  for (const row of clients) {
    const [path] = row
    for (const stream of [false, true]) {
      const says = `${path}, stream: ${stream}`
      await upstream.script('a', [{ text: 'Hello', usage: null }])
      t.match(await ask(row, 'test', stream), /these token counts are estimated/, says)
      await upstream.script('a', [{ text: 'Hello', usage: { prompt: 3, completion: 2, reasoning: 0 } }])
      t.notMatch(await ask(row, 'test', stream), /estimated/, says)
      // Its clients are refused a limit below 16, as at OpenAI.
      if (path === '/v1/responses') continue
      const events = [{ type: 'response.completed', response }].map(event => `data: ${JSON.stringify(event)}\n\n`)
      const headers = { 'content-type': 'text/event-stream' }
      await upstream.script('r', [stream ? { headers, raw: events } : { body: { object: 'response', ...response } }])
      const told = await ask(row, 'raised', stream, limited[path] ?? { max_tokens: 5 })
      t.match(told, /"max_?[tT]okens":16\b/, `${says}: the limit is raised`)
    }
  }
})

t.test('B.10 what was delivered of a stream is charged though the ledger was locked at its end', async t => {
  const gateway = await startGateway(t, { providers })
  const chunks = Array.from({ length: 30 }, (_, i) => `word${i} `)
  await upstream.script('a', [{ chunks, hold: 30 }])
  const answer = await gateway.chat({ model: 'test', stream: true, messages })
  let text = ''
  const read = (async () => {
    for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) text += piece
  })()
  while (!text.includes('word29')) await sleep(20)
  const unlock = await lockBooks(gateway)
  await upstream.release('a')
  await read
  t.match(text, /billing_unavailable/)
  await unlock()
  await gateway.restart()
  const found = readBooks(gateway, books => ({
    rows: books.prepare('SELECT outcome, charged, completion_tokens AS tokens, error_code AS code FROM requests').all(),
    balance: books.prepare('SELECT held, used FROM balances').get(),
  }))
  t.same(found.rows, [{ outcome: 'error', charged: 71_000, tokens: 30, code: 'billing_unavailable' }])
  t.same(found.balance, { held: 0, used: 71_000 })
  t.same(await commandsOf(gateway)('usage.check'), { differences: [] })
})
