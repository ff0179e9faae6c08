/** One gateway of two workers: as exact as one process, reloaded as one, and whole again when a worker ends. */
import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { readBooks } from '../helpers/books.ts'
import { Child } from '../helpers/child.ts'
import { commandsOf } from '../helpers/commands.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { runs } from '../helpers/runs.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { manifestOf, wires } from './matrix/wires.ts'

type Tree = Record<string, unknown>
interface Status {
  ready: boolean
  pid: number
  inFlight: number
  configVersion: string
  workers: { pid: number; ready: boolean; inFlight: number; configVersion: string }[]
}

const POLL_MS = 20
const bin = join(import.meta.dirname, '../../bin')
const upstream = await startUpstream(t)
/** A minute. */
const LIMIT = runs(100, 2)
const ratelimit = {
  rpm: 100_000,
  rules: [
    { organizations: ['limited'], rpm: LIMIT },
    { organizations: ['crowded'], rpm: 1000, concurrency: 4 },
  ],
}
const config = {
  server: { workers: 2, drain: '2s' },
  endpoints: { chat: { ratelimit, admission: { in_flight: 10_000, lag: '60s' } } },
}
const claude = wires.find(({ id }) => id === 'claude')!
const providers = {
  a: { base_url: upstream.url('a'), models: [testMapping] },
  refusing: { base_url: upstream.url('refusing'), models: [{ ...testMapping, model: 'refused' }] },
  thinker: { ...manifestOf(claude, upstream, 'thinker', ['thinker']), auth: { scheme: 'none' } },
}
const gateway = await startGateway(t, { providers, config })

const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
const PRICE = 0.000025
const chunks = ['One ', 'two ', 'six ', 'ten ']

const command = commandsOf(gateway)
const status = () => command<Status>('status')
async function tenant(name: string, credits = '1') {
  const { id: org } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization: org, amount: credits })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
  const { id, key } = await command<{ id: string; key: string }>('keys.create', { project })
  return { org, id, as: { authorization: `Bearer ${key}` } }
}
/** Sent at once, so that they come over as many connections, and these are dealt out to the workers in turn. */
const askAll = (count: number, as = {}, body: Tree = request) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const response = await gateway.chat({ ...body }, as)
      return { status: response.status, headers: response.headers, text: await response.text() }
    }),
  )
const count = (answers: { status: number }[], status: number) => answers.filter(one => one.status === status).length
const inFlightOf = async () => (await status()).workers.map(worker => worker.inFlight)

/** The first page of `/ui`. */
async function overviewPage(): Promise<string> {
  const body = new URLSearchParams({ token: gateway.token })
  const signIn = await fetch(`${gateway.adminUrl}/ui/sign-in`, { method: 'POST', body, redirect: 'manual' })
  const cookie = signIn.headers.get('set-cookie')!.split(';')[0]!
  return (await fetch(`${gateway.adminUrl}/ui`, { headers: { cookie } })).text()
}

t.test(`CC-05 ${4 * LIMIT} requests on a limit of ${LIMIT} a minute are ${LIMIT}`, async t => {
  await upstream.reset()
  await upstream.script('a', [{ usage }])
  const { as } = await tenant('limited')
  const answers = [...(await askAll(3, as)), ...(await askAll(4 * LIMIT - 3, as))]
  t.strictSame([count(answers, 200), count(answers, 429)], [LIMIT, 3 * LIMIT])
  t.equal((await upstream.record('a')).length, LIMIT)
  for (const { status, headers } of answers) {
    const left = Number(headers.get('ratelimit-remaining'))
    const told = `"requests";r=${left};t=${headers.get('ratelimit-reset')}`
    if (headers.get('ratelimit') !== told || headers.get('ratelimit-limit') !== String(LIMIT))
      t.fail(headers.get('ratelimit')!)
    if (status === 429 && (left !== 0 || !headers.get('retry-after'))) t.fail(`${left} left, and refused`)
    if (status === 200 && !(left >= 0 && left < LIMIT)) t.fail(`${left} left`)
  }
  t.ok(Number(answers[0]!.headers.get('ratelimit-remaining')) >= LIMIT - 3, 'who comes first has nearly all before it')
})

t.test('of requests at the same time as many run as may, whichever worker has them', async t => {
  await upstream.reset()
  await upstream.script('a', [{ hold: 0, usage }])
  const { as } = await tenant('crowded')
  for (let round = 0; round < 2; round++) {
    const asked = askAll(12, as)
    await upstream.record('a', { requests: 4 * (round + 1) })
    while ((await inFlightOf()).reduce((sum, inFlight) => sum + inFlight) > 4) await sleep(POLL_MS)
    await upstream.release('a')
    const answers = await asked
    t.strictSame([count(answers, 200), count(answers, 429)], [4, 8])
  }
})

t.test('wrong attempts of an OAuth client count for all workers together, and right ones do not', async t => {
  const token = async (id: string) => {
    const body = new URLSearchParams({ client_id: id, grant_type: 'refresh_token', refresh_token: 'x' })
    // A connection for each request, so that both workers get some.
    const headers = { connection: 'close' }
    return (await fetch(`${gateway.url}/oauth/token`, { method: 'POST', body, headers })).status
  }
  const metadata = { redirect_uris: ['http://127.0.0.1/cb'], token_endpoint_auth_method: 'none' }
  const registered = await gateway.post('/oauth/register', metadata)
  const { client_id: id } = (await registered.json()) as { client_id: string }
  const seen = async (times: number, id: string) => {
    const statuses = await Promise.all(Array.from({ length: times }, () => token(id)))
    return [...new Set(statuses)]
  }
  t.same(await seen(5, id), [400], 'the token is wrong, the client is not')
  t.same(await seen(20, 'mgw_cl_unknown'), [401])
  t.same(await seen(5, id), [429])
  t.same(await seen(5, 'mgw_cl_unknown'), [429])
})

t.test('CC-01 two hundred requests on credit for ten are ten', async t => {
  await upstream.reset()
  await upstream.script('a', [{ usage }])
  const { as, org } = await tenant('poor', (PRICE * 10).toFixed(9))
  const answers = await askAll(200, as)
  t.strictSame([count(answers, 200), count(answers, 402)], [10, 190])
  t.equal((await upstream.record('a')).length, 10)
  t.match(await command('credits.show', { organization: org }), { held: '0', used: '0.00025' })
  t.strictSame(await command('usage.check'), { differences: [] })
})

t.test('what a client drops of its reasoning comes back, whichever worker has the next turn', async t => {
  await upstream.reset()
  const call = { name: 'weather', args: { city: 'Oslo' } }
  await upstream.script('thinker', [
    ...Array(8).fill({ reasoning: 'I must look', toolCalls: [call] }),
    { text: 'Cold' },
  ])
  const { as } = await tenant('forgetful')
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]
  const body = { ...request, model: 'thinker', max_tokens: 4096, reasoning_effort: 'low', tools }
  const told = await askAll(8, as, body)
  const next = told.map(({ text }, at) => {
    const { choices } = JSON.parse(text) as { choices: { message: { tool_calls: { id: string; function: Tree }[] } }[] }
    const [made] = choices[0]!.message.tool_calls
    const asked = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: made!.id, type: 'function', function: made!.function }],
    }
    const result = { role: 'tool', tool_call_id: made!.id, content: `cold ${at}` }
    return { ...body, messages: [...request.messages, asked, result] }
  })
  const answers = await Promise.all(next.map(body => gateway.chat(body, as)))
  t.same(
    answers.map(({ status }) => status),
    Array(8).fill(200),
  )
  const later = (await upstream.record('thinker')).slice(8)
  t.equal(later.length, 8)
  for (const { body } of later) {
    const turn = (body as { messages: { role: string; content: Tree[] }[] }).messages.find(
      ({ role }) => role === 'assistant',
    )
    t.match(turn?.content[0], { type: 'thinking', thinking: 'I must look', signature: /./ })
  }
})

t.test('AT-05 a revoked key is soon refused by every worker', async t => {
  await upstream.reset()
  const { as, id } = await tenant('short')
  t.equal(count(await askAll(20, as), 200), 20)
  await command('keys.revoke', { id })
  const start = performance.now()
  for (; count(await askAll(20, as), 401) < 20; await pause())
    if (performance.now() - start > 30_000) return t.fail('still served')
  const value = performance.now() - start
  timing(t, { id: 'AT-05', what: 'until every worker refuses a revoked key', value, unit: 'ms', atMost: 1000 })
  t.equal(count(await askAll(20, as), 401), 20, 'and none of them serves it again')
})

t.test('CF-08 all workers run on one configuration, or none on the new one', async t => {
  await upstream.reset()
  const before = await status()
  t.match(before, { ready: true, pid: gateway.pid, workers: [{ ready: true }, { ready: true }] })
  const versions = ({ workers }: Status) => new Set(workers.map(({ configVersion }) => configVersion))
  t.strictSame(versions(before), new Set([before.configVersion]))

  await gateway.writeProvider('a', { base_url: upstream.url('b'), models: [testMapping] })
  const reloaded = (await (await gateway.admin('POST', '/reload')).json()) as { version: string }
  const after = await status()
  t.not(reloaded.version, before.configVersion)
  t.strictSame([...versions(after), after.configVersion], [reloaded.version, reloaded.version])
  t.equal(count(await askAll(20), 200), 20)
  t.strictSame([(await upstream.record('a')).length, (await upstream.record('b')).length], [0, 20])

  await gateway.writeFile('providers.d/a.yaml', 'provider: a\nname: 7\n')
  const refused = await gateway.admin('POST', '/reload')
  t.equal(refused.status, 400)
  t.match(await refused.text(), /providers\.d\/a\.yaml:\d+:\d+/)
  t.match(await status(), { ready: true, configVersion: reloaded.version, lastReload: { ok: false } })
  t.strictSame(versions(await status()), new Set([reloaded.version]))
  t.equal(count(await askAll(20), 200), 20, 'and goes on with the old one')

  await gateway.writeProvider('a', providers.a)
  // A saved file is enough.
  while ((await status()).configVersion !== before.configVersion) await sleep(20)
  while (!versions(await status()).has(before.configVersion)) await sleep(20)
  t.equal(metric(await gateway.metrics(), 'gateway_config_info'), 1, 'metrics tell of one version')
})

t.test('CF-08 a worker that refuses the configuration is reported until it accepts it', async t => {
  const FILTER = `
import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import { s } from 'model-gateway/plugin'
const refused = new URL('refused', import.meta.url)
export const plugin = {
  filters: [{
    name: 'picky',
    options: s.object({ word: s.string() }),
    create: () => {
      if (cluster.isWorker && existsSync(refused)) throw new Error('no luck')
      return { handle: (_ex, next) => next() }
    },
  }],
}
`
  const inference = ['auth', 'ratelimit', { picky: { word: 'one' } }, 'route', 'translate', 'billing', 'telemetry']
  const picky = await startGateway(t, {
    providers,
    config: { server: { workers: 2 }, catalog: { plugins: '../my-plugins' } },
    files: { 'my-plugins/picky.mjs': FILTER },
    chains: { inference, local: ['auth', 'ratelimit'] },
  })
  const ask = commandsOf(picky)
  const before = await ask<Status>('status')
  const settings = await readFile(picky.configPath, 'utf8')
  await picky.writeFile('my-plugins/refused', '')
  await picky.writeFile('config/gateway.yaml', settings.replace('one', 'two'))
  const told = /^worker \d+ does not run on configuration \w+: config\/gateway\.yaml:\d+:\d+: .*"picky".*: no luck/
  const token = join(picky.dir, 'data/admin.token')
  const ctl = async (name: string) => {
    const args = [name, '--admin', picky.adminUrl, '--token-file', token]
    const child = new Child(join(bin, 'gatewayctl.js'), args, { stdio: ['ignore', 'pipe', 'pipe'] })
    return { code: await child.exited, stdout: child.stdout, stderr: child.stderr }
  }
  t.match(await ctl('reload'), { code: 1, stdout: '', stderr: told })
  // The saved file is read too, and that is told when the workers have been asked.
  while (!/^last reload +failed at \S+: worker \d+ does not run/m.test((await ctl('status')).stdout))
    await sleep(POLL_MS)
  while (metric(await picky.metrics(), 'gateway_config_reload_successful') !== 0) await sleep(POLL_MS)
  const after = await ask<Status>('status')
  t.not(after.configVersion, before.configVersion)
  for (const { configVersion } of after.workers) t.equal(configVersion, before.configVersion)

  await rm(join(picky.dir, 'my-plugins/refused'))
  t.match(await ctl('reload'), { code: 0 })
  const mended = await ask<Status>('status')
  t.strictSame(new Set(mended.workers.map(({ configVersion }) => configVersion)), new Set([after.configVersion]))
  t.match(mended, { lastReload: { ok: true } })
  t.equal(metric(await picky.metrics(), 'gateway_config_reload_successful'), 1)

  // A worker starts with the plugins that the rest runs on, as they were when they were loaded.
  await picky.writeFile('my-plugins/unsound.mjs', 'export const plugin = (')
  while (metric(await picky.metrics(), 'gateway_config_reload_successful') !== 0) await sleep(POLL_MS)
  await picky.writeFile('my-plugins/picky.mjs', 'export const plugin = (')
  const { pid } = mended.workers[0]!
  process.kill(pid, 'SIGKILL')
  while (isAlive(pid) || (await ask<Status>('status')).workers.filter(({ ready }) => ready).length < 2) await sleep(20)
  t.notMatch(picky.stderr(), /worker start failed/)
})

t.test('metrics are sums over the workers, and the admin listener answers as that of one process does', async t => {
  await upstream.reset()
  const served = async () => metric(await gateway.metrics(), 'gateway_requests_total', { outcome: 'ok' })!
  const before = await served()
  t.equal(count(await askAll(40), 200), 40)
  t.equal((await served()) - before, 40)
  const text = await gateway.metrics()
  t.equal(metric(text, 'gateway_build_info'), 1)
  t.equal(metric(text, 'gateway_requests_in_flight'), 0)
  const timed = [...text.matchAll(/^gateway_request_duration_seconds_count\{.*outcome="ok".*\} (\d+)$/gm)]
  t.equal(
    timed.reduce((sum, [, value]) => sum + Number(value), 0),
    await served(),
  )
  t.ok(metric(text, 'process_resident_memory_bytes')! > 150e6, 'of all processes')
  t.equal((await gateway.admin('GET', '/ready')).status, 200)
  t.match(await command('route.explain', { model: 'test' }), { choice: 'a/test', candidates: [{ offer: 'a/test' }] })
  await t.rejects(command('route.explain', { model: 'nothing' }), /model_not_found/, 'a refusal comes through')
  t.match(await command('explain', { endpoint: 'chat' }), { endpoint: 'chat' })
  const token = join(gateway.dir, 'data/admin.token')
  const args = ['status', '--admin', gateway.adminUrl, '--token-file', token]
  const ctl = new Child(join(bin, 'gatewayctl.js'), args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.equal(await ctl.exited, 0)
  for (const { pid, configVersion } of (await status()).workers) {
    t.match(ctl.stdout, new RegExp(`^worker +${pid}, up [\\w ]+, \\d+ in flight, configuration ${configVersion}$`, 'm'))
  }
  const chat = new Child(join(bin, 'gatewayctl.js'), ['chat', 'Hi', '--model', 'test', ...args.slice(1)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.equal(await chat.exited, 0, `workers know at once what the primary lends: ${chat.stderr}`)
})

t.test('requests in flight are those of all workers in status, in the list of nodes and on the page', async t => {
  await upstream.reset()
  await upstream.script('a', [{ chunks, hold: 2, usage }])
  const streams = await Promise.all(Array.from({ length: 20 }, () => gateway.chat({ ...request, stream: true })))
  const { inFlight, workers } = await status()
  t.equal(inFlight, 20)
  t.equal(
    workers.reduce((sum, worker) => sum + worker.inFlight, 0),
    20,
  )
  t.ok(
    workers.every(worker => worker.inFlight > 0),
    'both serve',
  )
  t.match(await command('nodes.list'), [{ pid: gateway.pid, inFlight: 20 }])
  const page = await overviewPage()
  t.ok(page.includes('<dt>In flight</dt><dd>20 '))
  for (const { pid, inFlight } of workers) t.ok(page.includes(`<dd>${pid}, ${inFlight} in flight</dd>`))
  await upstream.release('a')
  for (const stream of streams) await readEvents(stream)
})

t.test('the worst health that any worker sees of a provider is shown', async t => {
  await upstream.reset()
  await upstream.script('refusing', [{ status: 401 }])
  const body = { ...request, model: 'refused' }
  t.not((await gateway.chat(body)).status, 200)
  const health = async () => {
    const all = await command<{ id: string; status: string; credentials: { circuit: string }[] }[]>('providers.health')
    return all.find(({ id }) => id === 'refusing')!
  }
  const failing = { status: 'credential failing', credentials: [{ circuit: /^(open|half-open)$/ }] }
  t.match(await health(), failing)
  const held = async () => (await command<{ held: string }>('credits.show', { organization: 'default' })).held
  while ((await held()) !== '0') await sleep(POLL_MS)
  // The one that takes its place has seen no failure.
  const { pid } = (await status()).workers[0]!
  process.kill(pid, 'SIGKILL')
  while (isAlive(pid) || (await status()).workers.filter(({ ready }) => ready).length < 2) await sleep(POLL_MS)
  t.match(await health(), failing)
  t.match(await command('providers.health'), [{ id: 'a', status: 'live' }], 'others are as they were')
  t.ok((await overviewPage()).includes('credential failing'))
})

t.test('CS-01 a worker that is killed is replaced, and only its own requests fail', async t => {
  await upstream.reset()
  await upstream.script('a', [{ chunks, hold: 2, usage }])
  const { as, org } = await tenant('unlucky')
  const served = async () => metric(await gateway.metrics(), 'gateway_requests_total')!
  const before = await served()
  const streams = await Promise.all(Array.from({ length: 20 }, () => gateway.chat({ ...request, stream: true }, as)))
  const { workers } = await status()
  const [victim, other] = workers.map(({ pid }) => pid) as [number, number]
  const [lost, kept] = workers.map(({ inFlight }) => inFlight) as [number, number]
  t.ok(lost > 0 && kept > 0, `${lost} and ${kept} streams`)
  process.kill(victim, 'SIGKILL')
  while ((await status()).workers.some(worker => worker.pid === victim)) await sleep(POLL_MS)
  t.equal(count(await askAll(20, {}, { ...request, model: 'nothing' }), 404), 20, 'the other one serves meanwhile')
  await upstream.release('a')
  const ends = await Promise.all(streams.map(stream => readEvents(stream)))
  const whole = ends.filter(({ data, terminator }) => terminator === '[DONE]' && textOf(data) === chunks.join(''))
  t.equal(whole.length, kept)
  t.equal(ends.filter(({ broken }) => broken).length, lost, 'who is cut off sees it')

  while ((await status()).workers.filter(worker => worker.ready).length < 2) await sleep(20)
  const after = await status()
  t.ok(
    after.ready && after.workers.some(({ pid }) => pid === other) && !after.workers.some(({ pid }) => pid === victim),
  )
  t.strictSame(new Set(after.workers.map(({ configVersion }) => configVersion)), new Set([after.configVersion]))
  t.ok((await served()) >= before, 'no sum falls')
  await upstream.script('a', [{ usage }])
  t.equal(count(await askAll(20, as), 200), 20)
  // The requests of the dead are looked for every five seconds.
  const held = async () => (await command<{ held: string }>('credits.show', { organization: org })).held
  for (const start = performance.now(); (await held()) !== '0' && performance.now() - start < 30_000; ) await sleep(50)
  t.match(await command('credits.show', { organization: org }), {
    held: '0',
    used: String(Number((PRICE * (20 + kept)).toFixed(9))),
  })
  t.strictSame(await command('usage.check'), { differences: [] })
  t.match(gateway.stderr(), /"worker ended; restarting"/)
})

t.test(
  'CF-01 a worker that takes the place of another runs on what the rest runs on, whatever the files say',
  async t => {
    const path = 'config/gateway.yaml'
    const yaml = await readFile(join(gateway.dir, path), 'utf8')
    const running = (await status()).configVersion
    t.ok(yaml.includes('drain: 2s'))
    for (const text of [yaml.replace('drain: 2s', 'drain: 3s'), `${yaml}broken: [`]) {
      await gateway.writeFile(path, text)
      for (const { pid } of (await status()).workers) {
        process.kill(pid, 'SIGKILL')
        while (isAlive(pid) || (await status()).workers.filter(worker => worker.ready).length < 2) await sleep(20)
      }
      t.equal(count(await askAll(20), 200), 20)
      t.same(new Set((await status()).workers.map(worker => worker.configVersion)), new Set([running]))
    }
    await gateway.writeFile(path, yaml)
  },
)

t.test('the gateway is as it was', async t => {
  await checkInvariants(t, gateway, upstream)
})

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

t.test('SD-01 all streams of all workers end properly after SIGTERM, and so do all processes', async t => {
  await upstream.reset()
  await upstream.script('a', [{ chunks, hold: 2, usage }])
  const pids = [gateway.pid, ...(await status()).workers.map(({ pid }) => pid)]
  const streams = await Promise.all(Array.from({ length: 20 }, () => gateway.chat({ ...request, stream: true })))
  const exit = gateway.kill('SIGTERM')
  while ((await gateway.admin('GET', '/ready')).status !== 503) await pause()
  t.equal(metric(await gateway.metrics(), 'gateway_requests_in_flight'), 20)
  await upstream.release('a')
  for (const stream of streams) {
    const { data, terminator } = await readEvents(stream)
    t.strictSame([textOf(data), terminator], [chunks.join(''), '[DONE]'])
  }
  t.equal(await exit, 0)
  t.strictSame(pids.map(isAlive), [false, false, false])
  t.equal(
    readBooks(gateway, db => db.prepare('SELECT count(*) FROM holds').pluck().get()),
    0,
  )
})

t.test('SD-02, SD-03 what lasts too long ends with an error, and sooner after a second signal', async t => {
  const path = 'config/gateway.yaml'
  const yaml = await readFile(join(gateway.dir, path), 'utf8')
  for (const hurried of [false, true]) {
    // The second signal is what ends them: the drain alone would take an hour.
    await gateway.writeFile(path, hurried ? yaml.replace('drain: 2s', 'drain: 1h') : yaml)
    await gateway.restart()
    await upstream.reset()
    await upstream.script('a', [{ chunks, hold: 2 }])
    const streams = await Promise.all(Array.from({ length: 4 }, () => gateway.chat({ ...request, stream: true })))
    const at = performance.now()
    const exit = gateway.kill('SIGTERM')
    if (hurried) {
      while ((await gateway.admin('GET', '/ready')).status !== 503) await pause()
      gateway.signal('SIGTERM')
    }
    for (const stream of streams) {
      const { data, terminator } = await readEvents(stream)
      t.match(data.at(-2), { error: { code: 'server_shutting_down' } })
      t.equal(terminator, '[DONE]')
    }
    const ms = performance.now() - at
    // Two seconds after a second signal a process ends itself, whatever is left to do: here it may be busy for as long.
    t.ok(hurried ? [0, 1].includes((await exit) as number) : (await exit) === 0)
    if (!hurried) t.ok(ms >= 2000, `after ${Math.round(ms)} ms`)
    else
      timing(t, {
        id: 'SD-03',
        what: 'streams of workers end after a second signal',
        value: ms,
        unit: 'ms',
        atMost: 1900,
      })
  }
  await gateway.writeFile(path, yaml)
  await gateway.restart()
})

t.test('SD-06 a signal while a worker is being replaced ends all', async t => {
  const pids = (await status()).workers.map(({ pid }) => pid)
  process.kill(pids[0]!, 'SIGKILL')
  while ((await status()).workers.every(({ pid }) => pids.includes(pid))) await sleep(POLL_MS)
  const at = performance.now()
  t.equal(await gateway.kill('SIGTERM'), 0)
  const value = performance.now() - at
  timing(t, { id: 'SD-06', what: 'an end while a worker is replaced', value, unit: 'ms', atMost: 10_000 })
  await gateway.restart()
})

t.test('workers do not outlive the process that leads them', async t => {
  const pids = (await status()).workers.map(({ pid }) => pid)
  await gateway.kill('SIGKILL')
  const start = performance.now()
  while (pids.some(isAlive) && performance.now() - start < 30_000) await sleep(10)
  t.strictSame(pids.map(isAlive), [false, false])
  const value = performance.now() - start
  timing(t, { id: 'CS-01', what: 'workers end after their leader', value, unit: 'ms', atMost: 2000 })
  await gateway.restart()
  t.equal((await status()).workers.length, 2)
})

t.test('a fault that keeps workers from starting is reported once, and ends the gateway', async t => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => taken.once('listening', resolve))
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  await gateway.writeFile(
    'config/other.yaml',
    `server: { listen: '127.0.0.1:${port}', admin: 127.0.0.1:0, workers: 2 }
stores: { sqlite: ../data/other.db }
catalog: { models: ./models.d, providers: ../providers.d }
chains: { inference: [auth, ratelimit, route, translate, billing], local: [{ auth: { optional: true } }] }
`,
  )
  const args = ['--config', join(gateway.dir, 'config/other.yaml')]
  const child = new Child(join(bin, 'gateway.js'), args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.equal(await child.exited, 1)
  t.match(child.stderr, new RegExp(`^gateway: port ${port} is in use; [^\n]*\n$`))
})
