/** A database that another process locks, or that breaks: who is still served, who is told what, and what recovers. */
import { closeSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { lockBooks, openBooks } from '../helpers/books.ts'
import { timing } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants, isErrorBody } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const customers = 'sk-customers-own-0123456789abcdef'
const upstream = await startUpstream(t, { key: [upstreamSecret, customers] })
const providers = { a: { base_url: upstream.url('a'), models: [testMapping] } }
const config = { endpoints: { chat: { ratelimit: { rpm: 100_000 } } } }

async function start(t: Test) {
  await upstream.reset()
  const gateway = await startGateway(t, { providers, config })
  const command = async <T = Tree>(name: string, args: object = {}): Promise<T> =>
    (await (await gateway.admin('POST', `/commands/${name}`, args)).json()) as T
  const tenant = async (mode: string) => {
    await command('orgs.create', { name: mode, account: 'open' })
    const { id: project } = await command('projects.create', { organization: mode, name: 'web', mode })
    if (mode !== 'credits') {
      await command('provider-keys.add', { organization: mode, provider: 'a', label: 'own', secret: customers })
    }
    const { key } = await command('keys.create', { project })
    return { authorization: `Bearer ${key}` }
  }
  return { gateway, command, tenant }
}
const ask = async (gateway: Gateway, as: Record<string, string>) => {
  const start = performance.now()
  const response = await gateway.chat('What is kept?', as)
  const body = (await response.json()) as { error?: { code: string } }
  return { status: response.status, code: body.error?.code, body, ms: performance.now() - start }
}

const OTHERS = 20
/**
 * How many requests are refused, one after another, while others get answers that need nothing but the event loop; and
 * the longest that one of these took. Who waits for the lock and lets nothing else run refuses one for each of them.
 */
async function refusedBeside(gateway: Gateway, as: Record<string, string>): Promise<[refused: number, ms: number]> {
  let [running, refused, longest] = [true, 0, 0]
  const refusing = (async () => {
    for (; running; refused++) await ask(gateway, as)
  })()
  for (let n = 0; n < OTHERS; n++) {
    const start = performance.now()
    await (await fetch(`${gateway.url}/nowhere`)).text()
    longest = Math.max(longest, performance.now() - start)
  }
  const beside = refused
  running = false
  await refusing
  return [beside, longest]
}

t.test(
  'ST-01 while another process locks the database, requests fail after half a second and nothing else waits',
  async t => {
    const { gateway, command, tenant } = await start(t)
    const [paid, own] = [await tenant('credits'), await tenant('api-keys')]
    for (const as of [paid, own]) t.equal((await ask(gateway, as)).status, 200)
    // A process of its own: the lock must be held while this one waits for answers.
    const unlock = await lockBooks(gateway)
    const answers = await Promise.all([paid, paid, own, own].map(as => ask(gateway, as)))
    for (const { status, code, body, ms } of answers.slice(0, 2)) {
      t.match([status, code], [503, 'billing_unavailable'])
      t.ok(isErrorBody(body))
      t.ok(ms > 400, `refused after ${Math.round(ms)} ms`)
      timing(t, { id: 'ST-01', what: 'a refusal while the database is locked', value: ms, unit: 'ms', atMost: 1000 })
    }
    for (const { status } of answers.slice(2)) t.equal(status, 200, 'who pays the provider itself is served')
    const [refused, value] = await refusedBeside(gateway, paid)
    t.ok(refused < OTHERS / 2, `${refused} are refused while ${OTHERS} others are answered`)
    timing(t, { id: 'ST-01', what: 'the longest that anybody else waited', value, unit: 'ms', atMost: 250 })
    const unknown = await gateway.chat('Hi', { authorization: `Bearer mgw_${'A'.repeat(43)}` })
    t.ok([401, 503].includes(unknown.status), 'reading is possible all the same')
    const health = await fetch(gateway.url)
    t.equal(health.status, 503)
    t.match(await health.json(), { health: { database: { connected: false, error: /locked/ } } })

    await unlock()
    t.equal((await ask(gateway, paid)).status, 200, 'it recovers by itself')
    t.equal((await gateway.get('/')).status, 200)
    const spools = () => readdirSync(join(gateway.dir, 'data')).filter(name => name.startsWith('spool-'))
    for (let i = 0; i < 300 && spools().length > 0; i++) await sleep(100)
    t.strictSame(spools(), [])
    t.match(await command('usage', { organization: 'api-keys' }), { totals: { requests: 3 } }, 'nothing is lost')
    t.strictSame(await command('usage.check'), { differences: [] })
    await checkInvariants(t, gateway, upstream, { secrets: [customers] })
  },
)

t.test('ST-04 a database that breaks while it is open makes the gateway ill, and no answer wrong', async t => {
  const { gateway, tenant } = await start(t)
  const paid = await tenant('credits')
  t.equal((await ask(gateway, paid)).status, 200)
  const path = join(gateway.dir, 'data/gateway.db')
  const db = new Database(path)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
  const size = statSync(path).size
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(size - 4096, 0x5a), 0, size - 4096, 4096)
  closeSync(file)
  const statuses = new Set<number>()
  for (let i = 0; i < 20; i++) {
    const { status, body } = await ask(gateway, paid)
    statuses.add(status)
    t.ok(isErrorBody(body) || status === 200)
  }
  t.notOk(statuses.has(401), 'a known key is never called unknown')
  t.ok(statuses.has(503))
  const health = await fetch(gateway.url)
  t.equal(health.status, 503)
  t.match(await health.json(), { health: { database: { connected: false, error: 'unavailable' } } })
  for (const path of ['/', '/v1/key', '/ready', '/live', '/health']) {
    const answer = await (await gateway.get(path)).text()
    t.notMatch(answer, /disk|gateway\.db|data\/|malformed|I\/O|SQLITE/i, `${path} shows nothing of the disk`)
  }
  t.equal((await fetch(`${gateway.url}/nowhere`)).status, 404, 'the process lives')
  await gateway.kill('SIGKILL')
})

t.test('rows that are kept for a while only are dropped, and the sums stay', async t => {
  await upstream.reset()
  const keep = { stores: { sqlite: '../data/gateway.db', keep_requests: '1ms' } }
  const gateway = await startGateway(t, { providers, config: { ...config, ...keep } })
  for (let i = 0; i < 3; i++) t.equal((await gateway.chat('Hi')).status, 200)
  await gateway.restart()
  const books = openBooks(t, gateway)
  const count = books.prepare<[], number>('SELECT count(*) FROM requests').pluck()
  for (let i = 0; i < 300 && count.get()! > 0; i++) await sleep(100)
  t.equal(count.get(), 0)
  const usage = (await (await gateway.admin('POST', '/commands/usage')).json()) as { totals: Tree }
  t.equal(usage.totals.requests, 3)
  t.strictSame(await (await gateway.admin('POST', '/commands/usage.check')).json(), { differences: [] })
})
