/** Money bounds spending at any concurrency, for any body, whenever clients leave (docs/money.md#holds). */
import { request as httpRequest } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { type ChatChunk, readEvents } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const upstream = await startUpstream(t)
// 10 and 50 USD a million: a token of an answer costs 50,000 nano-USD.
const pricing = { prompt: '10', completion: '50' }
const supports = testMapping.supports.filter(name => name !== 'reasoning')
const dear = { ...testMapping, supports, model: 'dear', id: 'dear-1', pricing }
const quiet = { ...dear, supports: testMapping.supports, model: 'quiet', id: 'quiet-1' }
const claude = { ...quiet, model: 'claude', id: 'claude-1', supports: [...quiet.supports, 'file_input'] }
const pair = { ...dear, model: 'pair', id: 'pair-1' }
const paged = { ...dear, model: 'paged', id: 'paged-1', supports: [...supports, 'file_input'] }
const searching = [...supports, 'web_search']
const reader = {
  ...{ ...dear, model: 'reader', id: 'reader-1' },
  ...{ pricing: { ...pricing, web_search: '0.01' }, supports: searching },
}
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a'), models: [dear, quiet, pair, paged] },
    b: { base_url: upstream.url('b'), wires: { chat: 'anthropic.messages' }, models: [claude, reader, pair] },
  },
  models: ['dear', 'quiet', 'claude', 'reader', 'pair', 'paged'].map(id => ({
    ...{ id, name: id, family: 'test', input: ['text', 'image', 'file'], output: ['text'], stability: 'stable' },
    ...{ context_length: 1_000_000, max_output: 64_000 },
  })),
  config: { endpoints: { chat: { ratelimit: { rpm: 100_000 }, billing: { stream_hold: 256 } } } },
})
const command = commandsOf(gateway)
const EXTENSION_USD = (256 * 50) / 1e6

let made = 0
async function tenant(credits: string) {
  const { id: org } = await command<{ id: string }>('orgs.create', { name: `tenant-${++made}` })
  await command('credits.add', { organization: org, amount: credits })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  const balance = async () => {
    const { balance, held } = await command<{ balance: string; held: string }>('credits.show', { organization: org })
    return { balance: Number(balance), held: Number(held) }
  }
  return { key, as: { authorization: `Bearer ${key}` }, balance }
}
const messages = [{ role: 'user', content: 'Go on.' }]
const asked = { model: 'dear', stream: true, messages }

async function stream(as: Record<string, string>, more: Tree = {}) {
  const response = await gateway.chat({ ...asked, ...more }, as)
  if (response.status !== 200) return { status: response.status, reason: undefined, by: undefined, text: '' }
  const { data } = await readEvents<ChatChunk>(response)
  const choices = data.flatMap(chunk => chunk.choices ?? [])
  const text = choices.map(({ delta }) => delta.content ?? '').join('')
  const reason = choices.findLast(choice => choice.finish_reason != null)?.finish_reason
  const by = data.at(-1)?.metadata?.stopped_by
  return { status: 200, reason, by, text }
}

t.test('fifty streams at once run on five dollars, and on one cent end in order', async t => {
  // 1,000 tokens each, of four characters.
  const chunks = Array.from({ length: 50 }, () => 'x'.repeat(80))
  await upstream.script('a', [{ chunks, usage: null }])
  const rich = await tenant('5')
  const all = await Promise.all(Array.from({ length: 50 }, () => stream(rich.as)))
  t.same(new Set(all.map(({ reason, text }) => `${reason} ${text.length}`)), new Set(['stop 4000']))
  const after = await rich.balance()
  t.equal(after.held, 0)
  t.ok(Math.abs(after.balance - (5 - 50 * 0.05)) < 0.01, `charged: ${5 - after.balance}`)

  const poor = await tenant('0.01')
  const some = await Promise.all(Array.from({ length: 50 }, () => stream(poor.as)))
  const served = some.filter(({ status }) => status === 200)
  t.ok(served.length >= 1)
  for (const { reason, by } of served) t.same([reason, by], ['length', 'credit'])
  t.same(new Set(some.filter(({ status }) => status !== 200).map(({ status }) => status)), new Set([402]))
  const { balance, held } = await poor.balance()
  t.equal(held, 0)
  t.ok(balance > -EXTENSION_USD * served.length, `left: ${balance}`)
})

t.test('streams that are healed end with the credit, as others do', async t => {
  await upstream.script('a', [{ chunks: Array.from({ length: 50 }, () => 'x'.repeat(800)), usage: null }])
  const more = { response_format: { type: 'json_object' }, plugins: [{ id: 'response-healing' }] }
  const poor = await tenant('0.05')
  const { reason, by, text } = await stream(poor.as, more)
  t.same([reason, by], ['length', 'credit'])
  t.ok(text.length > 0 && text.length <= 4000, `${text.length} characters`)
  const { balance, held } = await poor.balance()
  t.equal(held, 0)
  t.ok(balance >= 0, `left: ${balance}`)
})

t.test('what a prompt weighs is held before it is sent', async t => {
  await upstream.reset()
  const caller = await tenant('0.01')
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const content = Array.from({ length: 200 }, () => picture)
  const ask = () => gateway.chat({ ...asked, max_tokens: 1, messages: [{ role: 'user', content }] }, caller.as)
  const refused = await Promise.all(Array.from({ length: 200 }, ask))
  t.same(new Set(refused.map(({ status }) => status)), new Set([402]))
  t.match(await refused[0]!.json(), { error: { message: /does not cover its prompt/ } })
  t.same(await upstream.record('a'), [])
  t.equal((await caller.balance()).balance, 0.01)
})

t.test('a whole answer is bounded by what its payer has, on every wire', async t => {
  await upstream.reset()
  const caller = await tenant('0.05')
  const answer = await gateway.chat({ model: 'dear', messages, max_tokens: 50_000 }, caller.as)
  t.match(await answer.json(), { metadata: { max_tokens: 999 } })
  const client = new Anthropic({ apiKey: caller.key, baseURL: gateway.url, maxRetries: 0, timeout: 60_000 })
  const thinking = { type: 'enabled' as const, budget_tokens: 30_000 }
  const said = await client.messages.create({
    model: 'claude',
    max_tokens: 40_000,
    thinking,
    messages: [{ role: 'user', content: 'Hi' }],
  })
  t.equal(said.type, 'message')
  const [chat] = await upstream.record('a')
  const [native] = await upstream.record('b')
  t.match(chat?.body, { max_tokens: 999 })
  const { max_tokens: sent, thinking: kept } = native!.body as { max_tokens: number; thinking?: object }
  t.ok(sent > 500 && sent < 1000, `sent ${sent}`)
  t.equal(kept, undefined, 'without room for the least budget nothing is thought')
  const broke = await tenant('0.01')
  t.match(await (await gateway.chat({ model: 'dear', messages, max_tokens: 50_000 }, broke.as)).json(), {
    error: { message: /affords max_tokens of 199 at most/ },
  })
})

t.test(
  'documents that a provider fetches leave half of the credit to others, and no more than it pays for',
  async t => {
    await upstream.reset()
    await upstream.script('b', [{ usage: { prompt: 1_000_000, completion: 1 } }])
    const caller = await tenant('3')
    const source = { type: 'url', url: 'https://a.example/long.pdf' }
    const body = {
      model: 'claude',
      max_tokens: 16,
      messages: [{ role: 'user', content: [{ type: 'document', source }] }],
    }
    const ask = (stream: boolean) => gateway.post('/v1/messages', { ...body, stream }, caller.as)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i % 2 === 0)))
    await Promise.all(answers.map(answer => answer.text()))
    const served = answers.filter(({ status }) => status === 200).length
    t.ok(served >= 1 && served <= 4, `served: ${served}`)
    t.equal(answers.filter(({ status }) => status === 402).length, 20 - served)
    t.equal((await upstream.record('b')).length, served)
    const { balance, held } = await caller.balance()
    t.equal(held, 0)
    t.ok(Math.abs(3 - 10 * served - balance) < 0.1, `left: ${balance}`)
  },
)

t.test('a stream beside a document of unknown size is not cut off for it', async t => {
  await upstream.reset()
  const caller = await tenant('9')
  const data = `data:application/pdf;base64,${Buffer.from('%PDF-').toString('base64')}`
  const file = { type: 'file', file: { file_data: data } }
  const long = Array.from({ length: 50 }, () => 'x'.repeat(80))
  await upstream.script('a', [{ chunks: long, usage: null, hold: 10 }, { chunks: long }])
  const plain = stream(caller.as)
  await upstream.record('a', { requests: 1, chunks: 10 })
  const withFile = await stream(caller.as, { model: 'paged', messages: [{ role: 'user', content: [file] }] })
  t.same([withFile.status, withFile.reason, withFile.text.length], [200, 'stop', 4000])
  await upstream.release('a')
  t.match(await plain, { status: 200, reason: 'stop', by: undefined })
  const { balance } = await caller.balance()
  t.ok(balance > 8.8, `left: ${balance}`)
})

t.test('an answer with more calls than are passed on is tried once, and paid', async t => {
  await upstream.reset()
  const caller = await tenant('1')
  const toolCalls = Array.from({ length: 1001 }, () => ({ name: 'f', args: {} }))
  for (const provider of ['a', 'b']) await upstream.script(provider, [{ toolCalls }])
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  const answer = await gateway.chat({ model: 'pair', messages, tools, max_tokens: 10_000 }, caller.as)
  t.equal(answer.status, 502)
  t.match(await answer.json(), { error: { message: /more than 1,000 tool calls/ } })
  const tried = await Promise.all(['a', 'b'].map(async provider => (await upstream.record(provider)).length))
  t.equal(tried[0]! + tried[1]!, 1)
  const { balance, held } = await caller.balance()
  t.equal(held, 0)
  t.ok(balance < 1, `left: ${balance}`)
})

/** Sends a request and leaves when `moment` has come. `said` resolves when the answer so far matches. */
async function leave(
  as: Record<string, string>,
  body: Tree,
  moment: (said: (pattern: RegExp) => Promise<void>) => Promise<unknown>,
  path = '/v1/chat/completions',
): Promise<void> {
  const sent = httpRequest(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...as },
  })
  sent.on('error', () => undefined)
  let [text, more] = ['', () => {}]
  sent.on('response', response => {
    response.setEncoding('utf8').on('error', () => undefined)
    response.on('data', (piece: string) => {
      text += piece
      more()
    })
  })
  const said = async (pattern: RegExp) => {
    while (!pattern.test(text)) {
      await new Promise<void>(resolve => {
        more = resolve
      })
    }
  }
  const closed = new Promise(resolve => sent.on('close', resolve))
  sent.end(JSON.stringify(body))
  await moment(said)
  const open = await connections()
  sent.destroy()
  await closed
  // The gateway learns of it a moment later.
  while ((await connections()) >= open) await new Promise(resolve => setTimeout(resolve, 5))
}

/** Open connections of the public listener. */
async function connections(): Promise<number> {
  const metrics = await (await gateway.admin('GET', '/metrics')).text()
  return Number(/^gateway_connections (\d+)$/m.exec(metrics)![1])
}

t.test('a caller that leaves early pays for what the provider has done', async t => {
  const content = 'x'.repeat(40_000)
  const prompt = [{ role: 'user', content }]
  const rows: [says: string, body: Tree, cost: (usd: number) => boolean][] = [
    // The upstream claims 10,002 tokens of prompt, and of what it has not sent nothing.
    ['a whole answer', { model: 'quiet', messages: prompt }, usd => usd > 0.0999 && usd < 0.1001],
    ['a stream', { model: 'quiet', stream: true, messages: prompt }, usd => usd >= 0.1 && usd < 0.3],
  ]
  for (const [says, body, isRight] of rows) {
    await upstream.reset()
    await upstream.script('a', [{ chunks: ['a', 'b', 'c'], hold: body.stream ? 1 : 0 }])
    const caller = await tenant('5')
    await leave(caller.as, body, () => upstream.record('a', body.stream ? { chunks: 1 } : { requests: 1 }))
    await upstream.record('a', { ended: 1 })
    const { balance, held } = await settled(caller)
    t.equal(held, 0, says)
    t.ok(isRight(5 - balance), `${says} costs ${5 - balance}`)
  }
  // 40,000 characters that a tool has read, which the provider reports at the end of its stream alone. A fetch is held for
  // before it is made; what a search finds is held for as it comes.
  const tools = [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 1 }]
  const found = [{ type: 'web_search_result', encrypted_content: content }]
  const readers: [name: string, path: string, asks: Tree, result: Tree | Tree[]][] = [
    ['web_fetch', '/v1/messages', { tools }, { type: 'web_fetch_result', content }],
    ['web_search', '/v1/chat/completions', { web_search: true }, found],
  ]
  for (const [name, path, asks, result] of readers) {
    const use = { type: 'server_tool_use', id: 'f', name, input: {} }
    const read = { type: `${name}_tool_result`, tool_use_id: 'f', content: result }
    const blocks = [use, read, { type: 'text', text: 'a' }].flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ])
    const frames = [
      { type: 'message_start', message: { id: 'm', usage: { input_tokens: 9, output_tokens: 1 } } },
      ...blocks,
    ].map(frame => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`)
    await upstream.reset()
    await upstream.script('b', [{ headers: { 'content-type': 'text/event-stream' }, raw: frames, hold: 6 }])
    const own = await tenant('5')
    const reading = { ...asked, model: 'reader', max_tokens: 9, ...asks }
    // The text after it shows that the gateway has seen what was read.
    await leave(own.as, reading, said => said(/"a"/), path)
    await upstream.release('b')
    const { balance: left } = await settled(own)
    t.ok(5 - left > 0.1 && 5 - left < 0.13, `what ${name} has read costs ${5 - left}`)
  }

  await upstream.reset()
  // The report comes after the client has left, and before the connection is given up.
  await upstream.script('a', [{ chunks: ['a', 'b'], hold: 1, usage: { prompt: 10_000, completion: 2_000 } }])
  const caller = await tenant('5')
  await leave(caller.as, { ...asked, messages: prompt }, () => upstream.record('a', { chunks: 1 }))
  await upstream.release('a')
  const { balance, held } = await settled(caller)
  t.same([balance.toFixed(6), held], ['4.800000', 0], 'its own report is what is charged')
})

async function settled(caller: { balance(): Promise<{ balance: number; held: number }> }) {
  for (;;) {
    const now = await caller.balance()
    if (now.held === 0 && now.balance !== 5) return now
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
