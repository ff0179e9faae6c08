/**
 * One organization does whatever takes longest, at random and many at a time; another one's requests are served by the
 * provider that they had before, at the same price, within twice their time.
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { random } from '../helpers/random.ts'
import { raw } from '../helpers/raw.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { clients, pace, question } from './load.ts'

const MS = Number(process.env.NEIGHBOR_MS ?? 60_000)
const PROBES_PER_SECOND = 5
/** What the provider takes to answer each of them. */
const ANSWER_MS = 200
/** With more, making the attacks takes both cores, and the probes wait for that. */
const AT_ONCE = 2
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31))

const names = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, at])))
const message = (content: string, more = '') =>
  `{"choices":[{"index":0,"message":{"role":"assistant","content":${content}${more}},"finish_reason":"stop"}]}`
const calls = (text: string) =>
  `,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(text)}}}]`

/** Answers of a provider that the attacker rules. */
const answers = [
  message(`"${'a'.repeat(28e6)}"`),
  message(`"${'\\u2041'.repeat(4e6)}"`),
  message('"a"', `,"extra":[${'{},'.repeat(10e6)}0]`),
  message('"a"', `,"extra":${names(400_000)}`),
  message('"a"', `,"extra":[${`${'1'.repeat(300)},`.repeat(90_000)}1]`),
  message('"a"', calls(names(30_000))),
  message(
    '"a"',
    `,"tool_calls":[${'{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},'.repeat(20_000)}{}]`,
  ),
  '['.repeat(300_000),
].map(text => Buffer.from(text))

const CHAT = '/v1/chat/completions'
const large = `data:image/png;base64,${Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(15e6)]).toString('base64')}`
const image = { type: 'image_url', image_url: { url: large } }
/** Bodies of the attacker's requests to other endpoints. */
const elsewhere: readonly (readonly [path: string, body: string])[] = [
  ['/v1/messages', question('test', { max_tokens: 9, messages: [{ role: 'user', content: [image] }] })],
  ['/v1/messages', question('hostile', { max_tokens: 9 })],
  ['/v1/responses', JSON.stringify({ model: 'hostile', input: 'Hi', stream: true })],
  ['/v1beta/models/hostile:generateContent', JSON.stringify({ contents: [{ parts: [{ text: 'Hi' }] }] })],
  ['/v1/completions', JSON.stringify({ model: 'hostile', prompt: 'Hi' })],
]

/** Bodies of the attacker's requests. */
const bodies = [
  question('test', { messages: [{ role: 'user', content: [image] }] }),
  question('hostile'),
  question('hostile', { stream: true }),
  question('test', { messages: [{ role: 'user', content: 'é'.repeat(10e6) }] }),
  question('test', { extra: Array.from({ length: 150_000 }, () => ({})) }),
  question('test', {
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: names(30_000) } }],
      },
      { role: 'tool', tool_call_id: 'c', content: names(30_000) },
    ],
  }),
  `{"model":"test","messages":${'['.repeat(5e6)}`,
  question('failing'),
]

const upstream = await startUpstream(t)
let turn = 0
const hostile = createServer((req, res) => {
  req.resume().on('end', () => {
    res.setHeader('content-type', 'application/json')
    res.end(answers[turn++ % answers.length])
  })
}).listen(0, '127.0.0.1')
await once(hostile, 'listening')
t.teardown(() => hostile.close().closeAllConnections())
const hostileUrl = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`
const gateway = await startGateway(t, {
  providers: {
    cheap: { base_url: upstream.url('cheap') },
    dear: { base_url: upstream.url('dear'), models: [{ ...testMapping, pricing: { prompt: '5', completion: '10' } }] },
    hostile: { base_url: hostileUrl, models: [{ ...testMapping, model: 'hostile' }] },
    failing: { base_url: upstream.url('failing'), models: [{ ...testMapping, model: 'failing' }] },
  },
  config: { endpoints: { chat: { ratelimit: { rpm: 1_000_000 } } } },
})
await upstream.script('cheap', [{ text: 'Fine', delayMs: ANSWER_MS }])
await upstream.script('failing', [{ status: 500 }])

async function keyOf(name: string): Promise<string> {
  const command = async (what: string, args: object) => {
    const answer = await gateway.admin('POST', `/commands/${what}`, args)
    return (await answer.json()) as { id: string; key: string }
  }
  const { id: organization } = await command('orgs.create', { name, account: 'open' })
  const { id: project } = await command('projects.create', { organization, name })
  return (await command('keys.create', { project, name })).key
}

/** Since the metrics were read last, in milliseconds. */
const lag = (metrics: string, quantile: string) =>
  1000 * Number(new RegExp(`^gateway_event_loop_lag_seconds\\{quantile="${quantile}"\\} (.*)$`, 'm').exec(metrics)![1])

interface Served {
  readonly provider: string
  readonly cost: number
}

t.test(`MT whatever one organization does, another one is served as before (seed ${SEED})`, async t => {
  const victim = clients(gateway.url, await keyOf('Victim'))
  const key = await keyOf('Attacker')
  const attacker = clients(gateway.url, key)
  t.teardown(() => Promise.all([victim.close(), attacker.close()]))
  const probe = async (ms: number) => {
    const times: number[] = []
    const served: Served[] = []
    const refused: unknown[] = []
    await pace(PROBES_PER_SECOND, ms, async () => {
      const { status, text, ms } = await victim.ask(question('test'))
      if (status !== 200) return refused.push({ status, text })
      const { usage, metadata } = JSON.parse(text)
      served.push({ provider: metadata.used_provider, cost: usage.cost })
      return times.push(ms)
    })
    t.strictSame(refused.slice(0, 3), [])
    return { times, served: [...new Set(served.map(row => JSON.stringify(row)))] }
  }
  await probe(2000)
  const before = await probe(10_000)
  await gateway.metrics()
  const chance = random(SEED)
  const below = (n: number) => Math.floor(chance() * n)
  let over = false
  const attack = async () => {
    while (!over) {
      const body = bodies[below(bodies.length)]!
      const other = below(3) === 0 ? elsewhere[below(elsewhere.length)]! : [CHAT, body]
      if (below(4) > 0) await attacker.ask(other[1]!, other[0])
      else {
        // Some leave early, and some say more than they send.
        const declared = Buffer.byteLength(body) + below(2) * 1000
        const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${key}\r\n`
        const text = `${head}Content-Type: application/json\r\nContent-Length: ${declared}\r\n\r\n${body}`
        await raw(gateway.port, text, { responses: 1, timeoutMs: below(500) })
      }
    }
  }
  const attacks = Array.from({ length: AT_ONCE }, attack)
  const during = await probe(MS)
  const metrics = await gateway.metrics()
  over = true
  await Promise.all(attacks)
  t.strictSame(during.served, before.served, 'by the same provider, at the same price')
  t.equal(during.served.length, 1)
  const [alone, beside] = [before, during].map(({ times }) => percentile(times, 0.5)) as [number, number]
  figure(t, { id: 'MT', what: 'time beside a hostile organization, p50', value: beside / alone, unit: '×', atMost: 2 })
  // What the probes wait for is here, too, where the attacks are made: this is the gateway's alone.
  for (const [quantile, atMost] of [
    ['0.99', 100],
    ['1', 500],
  ] as const) {
    const value = lag(metrics, quantile)
    figure(t, { id: 'MT', what: `event-loop lag beside it, quantile ${quantile}`, value, unit: 'ms', atMost })
  }
  // The record of what the upstream got is longer than a string may be.
  await checkInvariants(t, gateway)
})
