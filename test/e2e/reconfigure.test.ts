/** Configuration that changes, or is wrong, at a bad moment: what runs goes on as it began, and nothing is left open. */
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { stringify } from 'yaml'
import { DEMO_URL } from '../../src/demo/address.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { Child } from '../helpers/child.ts'
import { judged, TIMINGS, timing } from '../helpers/figure.ts'
import { manifest, startGateway, testMapping } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { raw } from '../helpers/raw.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const STREAMS = 20
const MAX_LAG_MS = 50
/** So many who need nothing but the event loop are answered before a large file is read: it has a thread of its own. */
const OTHERS = 30
/** Bytes of a large file; a third of the nightly run's takes a third of the CPU. */
const LARGE = judged ? 900_000 : 300_000
const chunks = ['One ', 'two ', 'six ', 'ten ']
const priced = (prompt: string) => [{ ...testMapping, pricing: { prompt, completion: '0' } }]

const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a'), models: priced('1') },
    b: { base_url: upstream.url('b'), models: [{ ...testMapping, model: 'other' }] },
  },
  models: ['test', 'other', 'third'].map(id => ({ id, name: id, family: 'test', input: ['text'], output: ['text'] })),
  config: { endpoints: { chat: { admission: { lag: '60s' } } } },
})
const settings = await readFile(gateway.configPath, 'utf8')

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway) })
const ask = (model: string, stream = false) =>
  gateway.chat({ model, stream, messages: [{ role: 'user', content: 'Four' }] })
const reload = async () => {
  const response = await gateway.admin('POST', '/reload')
  const body = (await response.json()) as { error?: { message: string } }
  return { status: response.status, message: body.error?.message ?? '' }
}
/** Reading the metrics would begin a new measurement of the lag. */
const inForce = async () =>
  ((await (await gateway.admin('POST', '/commands/status', {})).json()) as { configVersion: string }).configVersion
const version = async () => /gateway_config_info\{version="(\w+)"\}/.exec(await gateway.metrics())![1]

group('CF-06 streams of a provider that is taken away finish, and new requests do not find it', async t => {
  await upstream.script('b', [{ chunks, hold: 2 }])
  const streams = await Promise.all(Array.from({ length: STREAMS }, () => ask('other', true)))
  await writeFile(
    join(gateway.dir, 'providers.d/b.yaml'),
    stringify({ ...manifest('b', {}), base_url: upstream.url('b'), enabled: false }),
  )
  t.equal((await reload()).status, 200)
  const missing = await ask('other')
  t.ok([400, 404, 503].includes(missing.status), `${missing.status}`)
  await missing.text()
  await upstream.release('b')
  for (const response of streams) {
    const { data, terminator } = await readEvents(response)
    t.strictSame([textOf(data), terminator], [chunks.join(''), '[DONE]'])
  }
  t.equal((await upstream.record('b')).length, STREAMS)
})

group('CF-08 two files that change at once become one configuration', async t => {
  const before = metric(await gateway.metrics(), 'gateway_config_reloads_total', { result: 'failed' })
  const own = { ...manifest('c', { base_url: upstream.url('c'), models: [{ ...testMapping, model: 'fresh' }] }) }
  const model = { id: 'fresh', name: 'fresh', family: 'test', input: ['text'], output: ['text'] }
  await Promise.all([
    gateway.writeFile('providers.d/c.yaml', stringify(own)),
    gateway.writeFile('config/models.d/fresh.yaml', stringify({ models: [model] })),
  ])
  const statuses = new Set<number>()
  for (let tries = 0; tries < 3000 && !statuses.has(200); tries++) {
    const response = await ask('fresh')
    statuses.add(response.status)
    await response.text()
    await sleep(10)
  }
  t.strictSame([...statuses].sort(), [200, 404], 'unknown, then served')
  t.equal(metric(await gateway.metrics(), 'gateway_config_reloads_total', { result: 'failed' }), before)
})

group('CF-09 a request costs what it cost when it was admitted', async t => {
  await upstream.script('a', [
    { hold: 0, usage: { prompt: 1000, completion: 1 } },
    { usage: { prompt: 1000, completion: 1 } },
  ])
  const running = ask('test')
  await upstream.record('a', { requests: 1 })
  await gateway.writeProvider('a', { base_url: upstream.url('a'), models: priced('5') })
  t.equal((await reload()).status, 200)
  const costOf = async (response: Response) => ((await response.json()) as { usage: { cost: number } }).usage.cost
  t.equal(await costOf(await ask('test')), 0.005)
  await upstream.release('a')
  t.equal(await costOf(await running), 0.001)
})

/** A file of so many bytes of models, which is the largest part of any configuration. */
function large(bytes: number, name: string): string {
  const models: string[] = []
  for (let size = 0; size < bytes; size += models.at(-1)!.length) {
    const id = `model-${models.length}`
    models.push(`  - { id: ${id}, name: ${name}, family: test, input: [text], output: [text], max_output: 4096 }\n`)
  }
  return `models:\n${models.join('')}`
}

group(
  'CF-16 a large file is parsed without keeping anybody waiting, and one with a fault is refused at its place',
  async t => {
    let value = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TIMINGS; tries++) {
      const old = await inForce()
      const path = join(gateway.dir, 'config/models.d/large.yaml')
      const text = large(LARGE, `L${tries}`)
      await gateway.metrics()
      await writeFile(path, text)
      while ((await inForce()) === old) await sleep(20)
      const lag = metric(await gateway.metrics(), 'gateway_event_loop_lag_seconds', { quantile: '1' })!
      value = Math.min(value, 1000 * lag)
    }
    timing(t, { id: 'CF-16', what: 'others wait for a large file', value, unit: 'ms', atMost: MAX_LAG_MS })
    t.match(await (await ask('model-1')).json(), { error: { code: 'model_not_supported' } }, 'it is known')
    value = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TIMINGS; tries++) {
      await gateway.metrics()
      await gateway.writeFile('config/models.d/large.yaml', `${large(LARGE, 'L')}  - { id: x, name: ${tries} }\n`)
      let [reloading, others] = [true, 0]
      const reloaded = reload().finally(() => {
        reloading = false
      })
      for (; reloading && others < OTHERS; others++) await (await gateway.get('/nowhere')).text()
      const { status, message } = await reloaded
      t.equal(others, OTHERS, 'others are answered meanwhile')
      t.equal(status, 400)
      t.match(message, /^config\/models\.d\/large\.yaml:\d{4,}:5: missing key "family"/)
      const lag = metric(await gateway.metrics(), 'gateway_event_loop_lag_seconds', { quantile: '1' })!
      value = Math.min(value, 1000 * lag)
    }
    timing(t, { id: 'CF-16', what: 'others wait while a fault is sought', value, unit: 'ms', atMost: MAX_LAG_MS })
    await gateway.writeFile('config/models.d/large.yaml', `${large(100_000, 'L')}  - { id: "x\n`)
    const { status, message } = await reload()
    t.equal(status, 400)
    t.match(message, /^config\/models\.d\/large\.yaml:\d{3,}:\d+: /)
    await rm(join(gateway.dir, 'config/models.d/large.yaml'))
    t.equal((await reload()).status, 200)
  },
)

group('CF-10 what only a restart can change is refused by name, and stays', async t => {
  const before = await version()
  for (const [from, to, named] of [
    ['listen: 127.0.0.1:0', 'listen: 127.0.0.1:1', 'server.listen'],
    ['sqlite: ../data/gateway.db', 'sqlite: ../data/other.db', 'stores.sqlite'],
  ] as const) {
    t.ok(settings.includes(from))
    await gateway.writeFile('config/gateway.yaml', settings.replace(from, to))
    const { status, message } = await reload()
    t.equal(status, 400)
    t.match(message, named)
    t.equal(await version(), before)
    t.equal((await gateway.get('/')).status, 200)
  }
  t.notOk(existsSync(join(gateway.dir, 'data/other.db')))
  await gateway.writeFile('config/gateway.yaml', settings)
  t.equal((await reload()).status, 200)
})

group('CF-14 a configuration that is put back is the one that it was', async t => {
  const before = await version()
  await gateway.writeFile('config/gateway.yaml', settings.replace('attempts: 3', 'attempts: 2'))
  t.equal((await reload()).status, 200)
  t.not(await version(), before)
  await gateway.writeFile('config/gateway.yaml', `# The same as before.\n${settings}`)
  t.equal((await reload()).status, 200)
  t.equal(await version(), before)
})

group('CF-15 a file that would leave the door open is refused', async t => {
  const before = await version()
  const rows: [says: string, from: RegExp, to: string][] = [
    ['no filters', /inference:\n(?: {4}.*\n)+/, 'inference: []\n'],
    ['no auth', /\n {4}- auth\n/, '\n'],
    ['a null section', /chains:\n(?: .*\n)+/, 'chains:\n'],
    ['no chain', / {2}inference:\n(?: {4}.*\n)+/, ''],
    ['an auth that is a word', /- auth\n/, '- auth: { optional: "false" }\n'],
    ['a filter that is null', /- auth\n/, '- null\n'],
  ]
  for (const [says, from, to] of rows) {
    t.match(settings, from, says)
    await gateway.writeFile('config/gateway.yaml', settings.replace(from, to))
    const { status, message } = await reload()
    t.equal(status, 400, says)
    t.match(message, /^config\/gateway\.yaml:\d+:\d+: /, says)
    const open = await raw(gateway.port, 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n', {
      responses: 1,
    })
    t.equal(open.status, 401, says)
  }
  t.equal(await version(), before)
  await gateway.writeFile('config/gateway.yaml', settings)
  t.equal((await reload()).status, 200)
})

const ctl = fileURLToPath(new URL('../../bin/gatewayctl.js', import.meta.url))
t.test('CF-14 a configuration has one version, at every start and where it is checked', async t => {
  const manifest = { base_url: `\${${DEMO_URL}}`, auth: { scheme: 'none' } }
  const demo = await startGateway(t, { providers: { demo: manifest } })
  const facts = async () => {
    const { version, providers } = (await (await demo.admin('GET', '/config')).json()) as {
      version: string
      providers: { base_url: string }[]
    }
    return { version, url: providers[0]!.base_url }
  }
  const before = await facts()
  await demo.restart()
  const after = await facts()
  t.strictSame(after, before)
  const args = ['check', '--json', '--config', demo.configPath]
  const child = new Child(ctl, args, { env: { HOME: demo.dir }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.equal(await child.exited, 0)
  t.match(JSON.parse(child.stdout), { version: before.version })
})

const command = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url))
t.test('CF-11, CF-12 a start with a configuration that is wrong ends with code 2, and nothing listens', async t => {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => probe.once('listening', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise(resolve => probe.close(resolve))
  const listen = settings.replace('listen: 127.0.0.1:0', `listen: 127.0.0.1:${port}`)
  for (const [says, text] of Object.entries({
    'cut off': listen.slice(0, 400),
    'an unknown key': `${listen}\nx: 1\n`,
    nothing: '',
  })) {
    const config = join(gateway.dir, 'config/wrong.yaml')
    await writeFile(config, text)
    const child = new Child(command, ['--config', config], {
      env: { HOME: gateway.dir },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const start = performance.now()
    t.equal(await child.exited, 2, says)
    const value = performance.now() - start
    timing(t, { id: 'CF-12', what: `a start with a file that is ${says} ends after`, value, unit: 'ms', atMost: 5000 })
    t.match(child.stderr, /^gateway: .*wrong\.yaml:\d+:\d+: /, says)
    await t.rejects(raw(port, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n'))
  }
})
