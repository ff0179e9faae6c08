/** What stays apart: tenants' sessions and cached answers, and the gateway's own credentials from everybody. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { fingerprint, startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const upstream = await startUpstream(t)
const other = 'sk-other-canary-0123456789'
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a'), priority: 2, models: [testMapping, { ...testMapping, model: 'lone' }] },
    b: { base_url: upstream.url('b'), auth: { scheme: 'bearer', secret: other }, models: [testMapping] },
  },
})

const command = commandsOf(gateway)
let made = 0
async function tenant(changes: object = {}): Promise<Record<string, string>> {
  const name = `tenant-${++made}`
  await command('orgs.create', { name, account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: name, name, ...changes })
  const { key } = await command<{ key: string }>('keys.create', { project })
  return { authorization: `Bearer ${key}` }
}
interface Answer {
  status: number
  cache: string | null
  error?: { message: string; code: string }
  metadata?: { used_provider: string; routing: Tree[] }
}
async function ask(headers: Record<string, string>, more: Tree = {}): Promise<Answer> {
  const body = { model: 'test', messages: [{ role: 'user', content: 'What is kept?' }], ...more }
  const response = await gateway.chat(body, headers)
  const text = await response.text()
  const answer = (text.startsWith('{') ? JSON.parse(text) : {}) as Omit<Answer, 'status' | 'cache'>
  return { ...answer, status: response.status, cache: response.headers.get('x-gateway-cache') }
}
const providerOf = async (...args: Parameters<typeof ask>) => (await ask(...args)).metadata?.used_provider

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway), secrets: [other] })

group('AT-10 the same name of a session or a user is another one for another tenant', async t => {
  const [one, two] = [await tenant(), await tenant()]
  const session = { 'x-session-id': 'shared' }
  await upstream.script('a', [{ status: 500 }, {}])
  t.equal(await providerOf({ ...one, ...session }), 'b', 'who failed once')
  t.equal(await providerOf({ ...one, ...session }), 'b', 'stays with who answered')
  t.equal(await providerOf({ ...two, ...session }), 'a')
  t.equal(await providerOf(two, { user: 'shared' }), 'a')
})

group('AT-13 nothing is kept for replay but a whole and good answer', async t => {
  const caching = await tenant({ cache: 'on' })
  const rows: [says: string, step: object, more: Tree, status?: number][] = [
    ['an error of the provider', { status: 500 }, {}, 502],
    ['an error under status 200', { fault: 'error-in-200' }, {}, 502],
    ['a stream without an end', { fault: 'truncate' }, { stream: true }],
    ['a stream that is reset', { fault: 'reset', afterChunks: 1 }, { stream: true }],
    ['an error in a stream', { fault: 'error-event', afterChunks: 1 }, { stream: true }],
    ['a filtered answer', { finish: 'content_filter' }, {}],
    ['a filtered stream', { finish: 'content_filter' }, { stream: true }],
  ]
  for (const [index, [says, step, more, status = 200]] of rows.entries()) {
    await upstream.reset()
    await upstream.script('a', [step])
    const request = { model: 'lone', messages: [{ role: 'user', content: `Row ${index}` }], ...more }
    const first = await ask(caching, request)
    const second = await ask(caching, request)
    t.strictSame([first.status, second.status], [status, status], says)
    t.not(second.cache, 'HIT', says)
    t.ok((await upstream.record('a')).length >= 2, `${says}: the provider is asked again`)
  }
  await upstream.reset()
  await upstream.script('a', [{ finish: 'length' }])
  const request = { model: 'lone', messages: [{ role: 'user', content: 'As long as was wanted' }] }
  t.strictSame([(await ask(caching, request)).cache, (await ask(caching, request)).cache], ['MISS', 'HIT'])
})

group('AT-16 of a credential of the gateway nothing is told but a keyed fingerprint', async t => {
  const one = await tenant()
  const routingOf = async () => (await ask(one)).metadata!.routing
  const [first] = await routingOf()
  t.strictSame(Object.keys(first!).sort(), [
    'apiKeyHash',
    'credentialSource',
    'error_type',
    'model',
    'provider',
    'status_code',
    'succeeded',
  ])
  t.equal(first!.credentialSource, 'platform')
  const hash = String(first!.apiKeyHash)
  t.equal((await routingOf())[0]!.apiKeyHash, hash, 'the same each time')
  const plain = createHash('sha256').update(upstreamSecret)
  t.notOk(plain.digest('hex').includes(hash), 'and no hash that anybody could make of a guess')
})

group('AT-17 a credential of the gateway that is refused is no fault of the caller', async t => {
  const one = await tenant()
  await upstream.script('a', [{ status: 401 }])
  t.match(await ask(one), {
    status: 200,
    metadata: { used_provider: 'b', routing: [{ provider: 'a', status_code: 401, succeeded: false }, {}] },
  })
  t.match(await gateway.metrics(), /^gateway_attempts_total\{[^}]*outcome="[^"]*"[^}]*provider="a"[^}]*\} \d+$/m)
  const asked = (await upstream.record('a')).length
  t.equal(await providerOf(one), 'b')
  t.equal((await upstream.record('a')).length, asked, 'it is left alone')
  for (const status of [401, 402, 403]) {
    await upstream.script('a', [{ status }])
    const refused = await ask(one, { model: 'lone' })
    t.equal(refused.status, 502, `${status} of the provider`)
    t.notMatch(JSON.stringify(refused), upstreamSecret)
  }
  const seen = (await upstream.record()).map(({ headers }) => headers.authorization)
  t.ok(seen.every(shown => [upstreamSecret, other].some(secret => shown === `Bearer ${fingerprint(secret)}`)))
})

group('ST-14 health leaves out what it is told to, and nothing else', async t => {
  const off = (error: string) => ({ connected: false, error })
  const rows: [query: string, redis: object, database: object][] = [
    ['', off('not configured'), { connected: true }],
    ['?skip=redis', off('skipped'), { connected: true }],
    ['?skip=database', off('not configured'), off('skipped')],
    ['?skip=redis,database', off('skipped'), off('skipped')],
  ]
  for (const [query, redis, database] of rows) {
    const response = await fetch(`${gateway.url}/${query}`)
    t.equal(response.status, 200, query)
    t.match(await response.json(), { version: String, health: { status: 'ok', redis, database } })
  }
  const stale = await fetch(gateway.url, { headers: { authorization: 'Bearer stale', 'x-api-key': 'other' } })
  t.equal(stale.status, 200, 'whatever credentials a probe was set up with')
  const wrong = await fetch(`${gateway.url}/?skip=redis,disk`)
  t.match([wrong.status, await wrong.json()], [400, { error: { param: 'skip', message: /"disk" is not one of/ } }])
})
