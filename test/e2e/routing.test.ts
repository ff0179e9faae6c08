/** Routing as clients see it: outages that nobody notices, regions, named providers, deadlines and refusals. */
import { connect } from 'node:net'
import t from 'tap'
import type { ExplainedRoute } from '../../src/core/ports.ts'
import { openBooks } from '../helpers/books.ts'
import { Child } from '../helpers/child.ts'
import { figure, timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>
interface Metadata {
  used_provider: string
  used_region: string | null
  routing: { provider: string; region?: string; status_code: number; error_type: string; succeeded: boolean }[]
}

const upstream = await startUpstream(t)
const serve = (id: string, models: string[], usd: string, more: Tree = {}) => ({
  [id]: {
    base_url: upstream.url(id),
    models: models.map(model => ({ ...testMapping, model, pricing: { prompt: usd, completion: usd } })),
    ...more,
  },
})
/** A process that listens and then never takes a connection: once its queue is full, nobody is answered at all. */
const deaf = `
  const server = require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, server.address().port + '\\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`
const hole = new Child('-e', [deaf], { stdio: ['ignore', 'pipe', 'inherit'] })
const holePort = Number(await hole.firstLine(1, 60_000))
const callers = Array.from({ length: 16 }, () => connect(holePort, '127.0.0.1').on('error', () => undefined))
t.teardown(async () => {
  for (const caller of callers) caller.destroy()
  await hole.kill('SIGKILL')
})

const late = { connect: '1h', first_event: '900ms', idle: '1h', total: '1s' }
const gateway = await startGateway(t, {
  providers: {
    ...serve('down', ['outage'], '1'),
    ...serve('failing', ['newly'], '1'),
    ...serve('up', ['outage', 'newly'], '2'),
    ...serve('slow1', ['slow'], '1', { timeouts: late }),
    ...serve('slow2', ['slow'], '2', { timeouts: late }),
    ...serve('slow3', ['slow'], '3', { timeouts: late }),
    ...serve('worn', ['worn'], '1'),
    ...serve('named', ['named'], '1'),
    ...serve('other', ['named'], '2'),
    ...serve('pinned', ['named'], '3'),
    ...serve('unpaid', ['named'], '4'),
    ...serve('hole', ['hole'], '1', {
      base_url: `http://127.0.0.1:${holePort}/v1`,
      timeouts: { connect: '500ms', first_event: '1h', total: '1h' },
    }),
    ...serve('beside', ['hole'], '2'),
    ...serve('cheap', ['tenants'], '1'),
    ...serve('dear', ['tenants'], '5'),
    cloud: {
      base_url: upstream.url('{region}'),
      models: [{ ...testMapping, model: 'regional', regions: ['east', 'west'] }],
    },
    plain: {
      base_url: upstream.url('plain'),
      models: [{ ...testMapping, model: 'plain', supports: ['streaming'] }],
    },
  },
  // Nothing is left to chance or to the machine's speed here; what these weights do, the simulation shows.
  config: {
    endpoints: {
      chat: {
        admission: { lag: '60s' },
        ratelimit: { rpm: 1_000_000 },
        route: { exploration: 0, weights: { throughput: 0, latency: 0 } },
      },
    },
  },
})
const books = openBooks(t, gateway)

const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const hits = async (prefix: string) => (await upstream.record(prefix)).length
const ask = (model: string, more: Tree = {}, headers = {}) =>
  gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }], ...more }, headers)

/** So many requests, some at a time, every other one streamed; the statuses, and who answered. */
async function load(model: string, requests: number, atOnce: number): Promise<{ failed: number; by: string[] }> {
  const by: string[] = []
  let [sent, failed] = [0, 0]
  const client = async () => {
    while (sent < requests) {
      const stream = sent++ % 2 === 1
      const response = await ask(model, { stream })
      const last = stream ? (await readEvents(response)).data.at(-1) : await response.json()
      if (response.status === 200) by.push((last as { metadata: Metadata }).metadata.used_provider)
      else failed++
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  return { failed, by }
}

const explained = async (model: string) =>
  (await (await gateway.admin('POST', '/commands/route.explain', { model })).json()) as ExplainedRoute

t.test('UF-17 a provider that is down is seen by no client while another one serves the model', async t => {
  await play('down', { status: 503 })
  const requests = Number(process.env.OUTAGE_REQUESTS ?? 400)
  const { failed, by } = await load('outage', requests, 8)
  figure(t, { id: 'UF-17', what: 'of them failed', value: failed, unit: '', atMost: 0 })
  t.strictSame([...new Set(by)], ['up'])
  const attempts = (await hits('down')) + (await hits('up'))
  figure(t, { id: 'UF-17', what: 'requests while one provider is down', value: requests, unit: '' })
  figure(t, { id: 'UF-17', what: 'attempts for them', value: attempts, unit: '', atMost: 1.2 * requests + 3 })
  const { choice, candidates } = await explained('outage')
  t.equal(choice, 'up/outage')
  t.match(
    candidates.map(({ offer, circuit, place }) => [offer, circuit, place]),
    [
      ['up/outage', 'closed', 1],
      ['down/outage', 'open', 2],
    ],
  )
})

t.test('UF-16 a provider that newly fails gets at most ten attempts, and no client sees it', async t => {
  const before = await load('newly', 60, 4)
  t.strictSame([before.failed, [...new Set(before.by)]], [0, ['failing']])
  const healthy = await hits('failing')
  await play('failing', { status: 500 })
  const { failed, by } = await load('newly', 200, 4)
  t.equal(failed, 0)
  t.strictSame([...new Set(by)], ['up'])
  const tried = (await hits('failing')) - healthy
  t.comment(`${tried} attempts before it was left`)
  t.ok(tried <= 10)
  const { candidates } = await explained('newly')
  const failing = candidates.find(({ offer }) => offer === 'failing/newly')!
  t.match(failing, { requests: 60 + tried, circuit: 'open', throughput: Number, latency: Number })
  t.ok(failing.uptime! < 100)
})

/** The headers of a new organization's requests. */
async function newcomer(name: string): Promise<Record<string, string>> {
  await gateway.admin('POST', '/commands/orgs.create', { name, account: 'open' })
  await gateway.admin('POST', '/commands/projects.create', { organization: name, name })
  const made = (await (await gateway.admin('POST', '/commands/keys.create', { project: name })).json()) as Tree
  return { authorization: `Bearer ${made.key}` }
}

t.test('failing requests of one tenant move no other one to a dearer provider', async t => {
  const [attacker, victim, late] = [await newcomer('attacker'), await newcomer('victim'), await newcomer('late')]
  const by = async (headers: Record<string, string>, more: Tree = {}) => {
    const response = await ask('tenants', more, headers)
    const answer = more.stream ? (await readEvents(response)).data.at(-1) : await response.json()
    return (answer as { metadata: Metadata }).metadata.used_provider
  }
  for (let count = 0; count < 3; count++) t.equal(await by(victim), 'cheap')
  await play('cheap', ...Array.from({ length: 8 }, () => ({ status: 500 })))
  for (let count = 0; count < 8; count++) await by(attacker)
  await play('cheap', { text: 'Fine' })
  t.equal(await by(attacker), 'dear', 'it moves itself')
  t.strictSame([await by(victim), await by(late), await by(victim, { stream: true })], ['cheap', 'cheap', 'cheap'])
  const { candidates } = await explained('tenants')
  t.equal(candidates.find(({ offer }) => offer === 'cheap/tenants')!.place, 1)
})

t.test('UF-18 SF-04 attempts share one deadline, each of them is given up, and none begins after it', async t => {
  for (const id of ['slow1', 'slow2', 'slow3']) await play(id, { fault: 'stall' })
  for (const stream of [false, true]) {
    const tried = async () => (await Promise.all(['slow1', 'slow2', 'slow3'].map(hits))).reduce((sum, n) => sum + n)
    const before = await tried()
    const start = performance.now()
    const response = await ask('slow', { stream })
    t.equal(response.status, 504)
    await response.text()
    const value = performance.now() - start
    timing(t, { id: 'SF-04', what: 'attempts on one deadline end after', value, unit: 'ms', atMost: 1500 })
    const attempts = (await tried()) - before
    t.ok(attempts === 1 || attempts === 2, `${attempts}: the second leaves no time for a third`)
  }
  const entries = await upstream.record(undefined, { ended: await hits('') })
  t.ok(entries.filter(({ prefix }) => prefix.startsWith('/slow')).every(({ outcome }) => outcome === 'aborted'))
})

t.test(
  'UF-04 a provider that cannot be reached is given up at the limit for connecting, and another one answers',
  async t => {
    const start = performance.now()
    const response = await ask('hole')
    const ms = performance.now() - start
    const { metadata } = (await response.json()) as { metadata: Metadata }
    t.match(metadata.routing, [
      { provider: 'hole', status_code: 0, error_type: 'network_error', succeeded: false },
      { provider: 'beside', succeeded: true },
    ])
    t.ok(ms > 450, `after ${Math.round(ms)} ms`)
    timing(t, {
      id: 'UF-18',
      what: 'another provider answers instead of a hole after',
      value: ms,
      unit: 'ms',
      atMost: 1500,
    })
  },
)

t.test('UF-13 when a provider closes an idle socket as it is used again, the request is sent once more', async t => {
  await play('worn', {}, { fault: 'reset' }, { text: 'Here I am.' })
  t.equal((await ask('worn')).status, 200)
  const response = await ask('worn')
  t.equal(response.status, 200)
  const { metadata } = (await response.json()) as { metadata: Metadata }
  t.match(metadata.routing, [
    { provider: 'worn', status_code: 0, error_type: 'network_error', succeeded: false },
    { provider: 'worn', status_code: 200, succeeded: true },
  ])
  await play('worn', {}, { fault: 'reset' })
  t.equal((await ask('worn')).status, 200)
  const broken = await ask('worn')
  t.equal(broken.status, 502, 'but no more than once')
  t.equal(await hits('worn'), 6)
  await broken.text()
})

t.test('a region that fails is followed by another one, which the answer names', async t => {
  await play('east', { status: 500 })
  const response = await ask('regional')
  const { metadata } = (await response.json()) as { metadata: Metadata }
  t.match(metadata, {
    used_provider: 'cloud',
    used_region: 'west',
    routing: [
      { provider: 'cloud', region: 'east', succeeded: false },
      { provider: 'cloud', region: 'west', succeeded: true },
    ],
  })
})

t.test('UF-15 a named provider stays while it is up, and is left when it is down, unless that is refused', async t => {
  const used = async (headers = {}) => {
    const response = await ask('named/named', {}, headers)
    const body = (await response.json()) as { metadata?: Metadata }
    return body.metadata?.used_provider ?? response.status
  }
  for (let count = 0; count < 9; count++) t.equal(await used(), 'named')
  await play('named', { status: 500 })
  t.strictSame([await used(), await used()], [502, 502], 'of ten attempts one failed, which is 90 percent')
  t.equal(await used(), 'other')
  t.equal(await used({ 'x-no-fallback': 'true' }), 502)
})

t.test('UF-15 of an outage the callers of a named provider see five answers, not all', async t => {
  await play('pinned', { status: 502 })
  const statuses: number[] = []
  for (let count = 0; count < 20; count++) {
    const response = await ask('pinned/named', { stream: count % 2 === 1 })
    statuses.push(response.status)
    await response.text()
  }
  t.strictSame(statuses, [...Array(5).fill(502), ...Array(15).fill(200)])
  t.equal(await hits('pinned'), 5, 'an open circuit is not tried')
  t.equal((await ask('pinned/named', {}, { 'x-no-fallback': 'true' })).status, 502)

  await play('unpaid', { status: 401 })
  t.equal((await ask('unpaid/named')).status, 502)
  t.equal((await ask('unpaid/named')).status, 200, 'a credential that is refused is left at once')
})

t.test('MF-10 SI-19 what cannot be routed is refused with the reason, before any provider is called', async t => {
  const rows: [request: Tree, status: number, code: string, param: string | null, says: RegExp][] = [
    [{ model: 'up/newly', routing: 'price' }, 400, 'unsupported_parameter_combination', 'routing', /prefixed/],
    [{ model: 'plain', verbosity: 'low' }, 400, 'model_not_supported', 'verbosity', /supports verbosity/],
    [{ model: 'plain', service_tier: 'flex' }, 400, 'unsupported_service_tier', 'service_tier', /service tier/],
    [{ model: 'plain', reasoning: { mode: 'pro' } }, 400, 'model_not_supported', 'reasoning.mode', /reasoning mode/],
    [{ model: 'plain', n: 2 }, 400, 'model_not_supported', 'n', /choices/],
    [{ model: 'plain', web_search: true }, 400, 'model_not_supported', 'tools', /web search/],
    [{ model: 'plain', routing: 'cheapest' }, 400, 'invalid_parameters', 'routing', /./],
    ...['__proto__', 'constructor/toString', 'plain/__proto__', 'hasOwnProperty'].map(
      (model): [Tree, number, string, string | null, RegExp] => [{ model }, 404, 'model_not_found', 'model', /exist/],
    ),
  ]
  for (const [request, status, code, param, says] of rows) {
    const { model, ...more } = request
    const response = await ask(String(model), more)
    const { error } = (await response.json()) as { error: { code: string; param: string | null; message: string } }
    t.match([response.status, error.code, error.param, error.message], [status, code, param, says])
  }
  t.equal(await hits('plain'), 0)
  t.strictSame(books.prepare("SELECT DISTINCT cost FROM requests WHERE error_code = 'model_not_supported'").all(), [
    { cost: 0 },
  ])
})

t.test(
  "SI-11 UF-09 what throttles a provider is not the client's: the wait is ours, and no header is passed on",
  async t => {
    await play('plain', { status: 429, headers: { 'retry-after': '3600', 'x-ratelimit-remaining-requests': '0' } })
    const response = await ask('plain')
    t.equal(response.status, 503)
    t.match(await response.json(), { error: { code: 'upstream_rate_limited' } })
    t.equal(response.headers.get('retry-after'), '300', 'as long as a provider is left alone, at most')
    t.notOk(response.headers.has('x-ratelimit-remaining-requests'))
    const messages = { model: 'plain', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }
    for (const again of [await ask('plain', { stream: true }), await gateway.post('/v1/messages', messages)]) {
      t.strictSame([again.status, again.headers.get('retry-after')], [503, '300'])
      await again.text()
    }
    await play('plain', {})
    t.equal((await ask('plain')).status, 200, 'the only provider is asked all the same')
  },
)

t.test('the gateway is as it was', async t => {
  await checkInvariants(t, gateway, upstream)
})
