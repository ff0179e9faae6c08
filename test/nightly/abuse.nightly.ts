/** Clients that mean harm: thousands that are slow on purpose, and requests of which some bytes are wrong. */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { random } from '../helpers/random.ts'
import { raw } from '../helpers/raw.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { startConnections } from './clients.ts'
import { pace, question } from './load.ts'

const CONNECTIONS = 4000
const MS = 60_000
const PROBES_PER_SECOND = 5
/** A probe that takes longer counts as refused. */
const TIMEOUT_MS = 5000
const FUZZERS = 16
const FUZZ_TIMEOUT_MS = 250
const RECORDED = 200
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31))

const upstream = await startUpstream(t)
/** A process of its own: while it is busy, the other one is not. */
const flood = await startUpstream(t)
const piece = { choices: [{ index: 0, delta: { content: 'x'.repeat(16_000) } }] }
await flood.script('endless', [{ raw: [{ text: `data: ${JSON.stringify(piece)}\n\n`, times: 1e9 }] }])
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a') },
    endless: { base_url: flood.url('endless'), models: [{ ...testMapping, model: 'endless' }] },
  },
  // Whoever asks too often is not looked at here.
  config: { endpoints: { chat: { ratelimit: { rpm: 1_000_000 } }, messages: { ratelimit: { rpm: 1_000_000 } } } },
})

const http = (line: string, body: string, key = gateway.key) =>
  [
    ...[`${line} HTTP/1.1`, 'Host: g', `Authorization: Bearer ${key}`, 'Content-Type: application/json'],
    ...[`Content-Length: ${Buffer.byteLength(body)}`, '', body],
  ].join('\r\n')

const command = async (name: string, args: object) => {
  const answer = await gateway.admin('POST', `/commands/${name}`, args)
  return (await answer.json()) as { id: string; key: string }
}
/** A key of an organization that is not the probe's. */
async function keyOfOthers(): Promise<string> {
  const { id: organization } = await command('orgs.create', { name: 'Slow' })
  const { id: project } = await command('projects.create', { organization, name: 'slow' })
  return (await command('keys.create', { project, name: 'slow' })).key
}

t.test(`PA-17 ${CONNECTIONS} clients that are slow on purpose keep no other client from being served`, async t => {
  const slow = await keyOfOthers()
  const alone = await gateway.descriptors()
  const probe = http('POST /v1/chat/completions', question('test'))
  for (const mode of ['headers', 'body', 'read'] as const) {
    const stop = await startConnections(t, mode, gateway.port, CONNECTIONS, slow)
    const times: number[] = []
    const refused: unknown[] = []
    await pace(PROBES_PER_SECOND, MS, async () => {
      const { status, body, ms } = await raw(gateway.port, probe, { responses: 1, timeoutMs: TIMEOUT_MS })
      if (status === 200) times.push(ms)
      else refused.push({ status, body })
    })
    const { open, closed } = await stop()
    while ((await gateway.descriptors()) > alone + 20) await sleep(20)
    t.comment(`${mode}: ${open} open at the end, ${closed} were closed before`)
    t.ok(open > CONNECTIONS / 2, 'most of them hold on, or come again')
    t.strictSame(refused.slice(0, 3), [])
    const share = (100 * times.length) / (times.length + refused.length)
    figure(t, { id: 'PA-17', what: `probes served, slow ${mode}`, value: share, unit: '%', atLeast: 100 })
    figure(t, { id: 'PA-17', what: `p99 of a probe, slow ${mode}`, value: percentile(times, 0.99), unit: 'ms' })
  }
  await checkInvariants(t, gateway, upstream)
})

/** So many requests, of every kind that is served, as they would be sent. */
function recorded(): Buffer[] {
  const messages = [{ role: 'user', content: 'What is a héron? 🙂' }]
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  const png = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=='
  const kinds = [
    http('POST /v1/chat/completions', JSON.stringify({ model: 'test', messages, max_tokens: 10 })),
    http('POST /v1/chat/completions', JSON.stringify({ model: 'test', messages, stream: true, tools })),
    http(
      'POST /v1/chat/completions',
      question('test', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: png } }] }] }),
    ),
    http('POST /v1/messages', JSON.stringify({ model: 'test', max_tokens: 10, messages })),
    http('POST /v1/messages', JSON.stringify({ model: 'test', max_tokens: 10, messages, stream: true })),
    http('POST /v1/embeddings', JSON.stringify({ model: 'test', input: ['a', 'b'] })),
    'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n' +
      `Authorization: Bearer ${gateway.key}\r\n\r\n${chunked(question('test'))}`,
    `GET /v1/models?x=1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${gateway.key}\r\n\r\n`,
    `GET /v1/key HTTP/1.1\r\nHost: g\r\nX-Api-Key: ${gateway.key}\r\nX-Request-Id: a\r\n\r\n`,
    'GET / HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n',
  ]
  return Array.from({ length: RECORDED }, (_, n) => {
    const more = n < kinds.length ? '' : (kinds[(n * 7) % kinds.length] ?? '')
    return Buffer.from((kinds[n % kinds.length] ?? '') + more)
  })
}
const chunked = (text: string) =>
  `${text.replace(/.{1,9}/gs, piece => `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`)}0\r\n\r\n`

/** One to four times: a byte that is another one, or a piece that is missing, doubled, noise, or of another request. */
function mutated(given: Buffer, corpus: readonly Buffer[], below: (n: number) => number): Buffer {
  let bytes = given
  for (let times = 1 + below(4); times > 0; times--) {
    const at = below(bytes.length)
    const end = Math.min(bytes.length, at + 1 + below(40))
    const other = corpus[below(corpus.length)]!
    const from = below(other.length)
    const noise = Buffer.from(Array.from({ length: 1 + below(8) }, () => below(256)))
    const middle = [
      Buffer.from([below(256)]),
      Buffer.alloc(0),
      Buffer.concat([bytes.subarray(at, end), bytes.subarray(at, end)]),
      Buffer.concat([noise, bytes.subarray(at, end)]),
      other.subarray(from, from + 1 + below(60)),
    ]
    const which = below(middle.length)
    bytes = Buffer.concat([bytes.subarray(0, at), middle[which]!, bytes.subarray(which === 0 ? at + 1 : end)])
  }
  return bytes
}

/** The bytes in up to four pieces, each in a turn of its own. */
function pieces(bytes: Buffer, below: (n: number) => number): (Buffer | { pauseMs: number })[] {
  const cuts = Array.from({ length: below(4) }, () => below(bytes.length + 1)).sort((a, b) => a - b)
  return [0, ...cuts].flatMap((from, n) => [bytes.subarray(from, cuts[n]), { pauseMs: 0 }])
}

t.test('PA-18 requests of which some bytes are wrong break nothing', async t => {
  t.comment(`FUZZ_SEED=${SEED}`)
  const corpus = recorded()
  const statuses = new Map<number, number>()
  const wrong: unknown[] = []
  const until = performance.now() + MS
  const fuzzer = async (_: unknown, n: number) => {
    const next = random(SEED + n)
    const below = (limit: number) => Math.floor(next() * limit)
    while (performance.now() < until) {
      const bytes = mutated(corpus[below(corpus.length)]!, corpus, below)
      const { responses } = await raw(gateway.port, pieces(bytes, below), { responses: 1, timeoutMs: FUZZ_TIMEOUT_MS })
      for (const { status, body } of responses.length > 0 ? responses : [{ status: 0, body: '' }]) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status === 500) wrong.push({ sent: bytes.toString('latin1'), body })
      }
    }
  }
  await Promise.all(Array.from({ length: FUZZERS }, fuzzer))
  const sent = [...statuses.values()].reduce((sum, count) => sum + count, 0)
  t.comment(JSON.stringify(Object.fromEntries([...statuses].sort())))
  t.strictSame(wrong.slice(0, 3), [])
  t.ok((statuses.get(200) ?? 0) > 0 && (statuses.get(400) ?? 0) > 0, 'some are served, some are refused')
  figure(t, { id: 'PA-18', what: 'mutated requests', value: sent, unit: '', atLeast: 1000 })
  figure(t, { id: 'PA-18', what: 'answered with 500', value: wrong.length, unit: '', atMost: 0 })
  await checkInvariants(t, gateway, upstream)
})
