/** Answers of which nothing has been sent yet: they are bounded, and another provider may still answer. */
import { createServer } from 'node:http'
import t from 'tap'
import { firstEventMs } from '../../src/core/offer.ts'
import type { Mapping } from '../../src/core/translator.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { readEvents } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const delta = (inner: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: inner, finish_reason: finish }] })}\n\n`
/** Without end: what no client sees, text, and a call whose arguments are no object. */
const floods: Record<string, string> = {
  // Long, so that the bound is reached before a client would see that its answer is waited for.
  usage: `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 }, pad: 'x'.repeat(4000) })}\n\n`,
  text: delta({ content: 'x'.repeat(1000) }),
  call: delta({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: 'y'.repeat(1000) } }] }),
}
const flooding = createServer((req, res) => {
  req.resume()
  const event = floods[req.url!.split('/')[1]!]!
  const block = Buffer.from(event.repeat(Math.ceil(65_536 / event.length)))
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const go = () => {
    while (!res.destroyed) if (!res.write(block)) return void res.once('drain', go)
  }
  go()
})
await new Promise<void>(resolve => flooding.listen(0, '127.0.0.1', resolve))
t.teardown(() => flooding.close())
const { port } = flooding.address() as { port: number }

const upstream = await startUpstream(t)
const of = (model: string, baseUrl: string, more: object = {}) => ({
  base_url: baseUrl,
  models: [{ ...testMapping, model }],
  ...more,
})
const gateway = await startGateway(t, {
  providers: {
    usage: of('usage', `http://127.0.0.1:${port}/usage`),
    text: of('text', `http://127.0.0.1:${port}/text`),
    call: of('call', `http://127.0.0.1:${port}/call`),
    patient: of('patient', upstream.url('a'), { timeouts: { first_event: '1h', idle: '300ms', total: '1h' } }),
    a: of('pair', upstream.url('a'), { priority: 2 }),
    b: of('pair', upstream.url('b'), { priority: 1 }),
  },
  env: { NODE_OPTIONS: '--max-old-space-size=256' },
})
const ask = (model: string, stream: boolean) =>
  gateway.chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] })

for (const [model, stream, message] of [
  ['usage', true, /larger than 32 MiB/],
  ['usage', false, /larger than 32 MiB/],
  ['text', false, /text is longer than 4194304 characters/],
  ['call', false, /arguments of its tool calls are longer than 4194304 characters/],
] as const) {
  t.test(`UF-11 ${model} without end, stream: ${stream}, is cut at its bound`, async t => {
    const response = await ask(model, stream)
    t.equal(response.status, 502)
    t.match(await response.json(), { error: { message } })
  })
}

const json = { 'content-type': 'application/json' }
const whole = (message: object, finish: string) => ({
  id: 'x',
  choices: [{ index: 0, message, finish_reason: finish }],
})
const nameless = { id: 'c', type: 'function', function: { arguments: '{"a":1}' } }
for (const [says, step] of [
  ['has text and ended in an error', { headers: json, body: whole({ role: 'assistant', content: 'Hi' }, 'error') }],
  [
    'has text and a call that cannot be made',
    { headers: json, body: whole({ role: 'assistant', content: 'Hi', tool_calls: [nameless] }, 'tool_calls') },
  ],
  [
    'comes as a stream that breaks off',
    { headers: { 'content-type': 'text/event-stream' }, raw: [delta({ content: 'Hi' })] },
  ],
] as const) {
  t.test(`E1, E9 a whole answer that ${says}: another provider answers`, async t => {
    await upstream.reset()
    await upstream.script('a', [step as never])
    await upstream.script('b', [{ text: 'From B' }])
    const response = await ask('pair', false)
    t.equal(response.status, 200)
    t.match(await response.json(), {
      choices: [{ message: { content: 'From B' } }],
      metadata: {
        routing: [
          { provider: 'a', succeeded: false },
          { provider: 'b', succeeded: true },
        ],
      },
    })
  })
}

t.test('SF-03 silence is timed from the first event on, though that came late', async t => {
  await upstream.script('a', [{ chunks: ['one ', 'two ', 'three'], delayMs: 500, fault: 'stall', afterChunks: 2 }])
  const { data } = await readEvents<{ error?: { code: string } }>(await ask('patient', true))
  t.equal(data.find(({ error }) => error)?.error?.code, 'timeout')
})

t.test('what says nothing is not kept in the cache', async t => {
  await commandsOf(gateway)('projects.update', { project: 'default', cache: 'on' })
  await upstream.script('a', [{ headers: json, body: whole({ role: 'assistant', content: '' }, 'stop') }])
  for (let n = 0; n < 2; n++) {
    const response = await ask('pair', false)
    t.equal(response.headers.get('x-gateway-cache'), 'MISS')
    await response.json()
  }
})

t.test('reliability C: by default a first event may take as long as it does', async t => {
  const offer = (supports: string[], firstEvent?: number) =>
    ({ supports: new Set(supports), provider: { timeouts: { firstEvent } } }) as unknown as Mapping
  t.equal(firstEventMs(offer(['streaming']), true), 60_000)
  t.equal(firstEventMs(offer(['streaming', 'reasoning']), true), 300_000)
  t.equal(firstEventMs(offer(['streaming']), false), 600_000)
  t.equal(firstEventMs(offer([]), true), 600_000)
  t.equal(firstEventMs(offer(['streaming'], 5), false), 5)
})
