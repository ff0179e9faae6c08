/** Operations on several nodes: they start at once, are restarted in turn, and outlive their database. */
import pg from 'pg'
import t from 'tap'
import { migrate } from '../../src/stores/postgres/migrate.ts'
import { migrations } from '../../src/stores/postgres/migrations/index.ts'
import { commandsOf } from '../helpers/commands.ts'
import { figure, judged, timing } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { postgresServer, startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { Balancer } from '../nightly/balancer.ts'
import { clients, IDLE_MS } from '../nightly/load.ts'
import { rollUnderLoad } from '../nightly/rolling.ts'

const ROLLING = judged ? { rounds: 3, perSecond: 300 } : { rounds: 1, perSecond: 20 }
const skip = withoutPostgres
const upstream = await startUpstream(t)
const providers = { a: { base_url: upstream.url('a'), models: [testMapping] } }
const endpoints = { chat: { ratelimit: { rpm: 1_000_000 }, admission: { org_share: 1, lag: '60s' } } }

async function rowsOf<T>(url: string, text: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows as T[]
  } finally {
    await client.end()
  }
}

for (const [says, version] of [
  ['an empty database', 0],
  ['an older database', 3],
] as const) {
  t.test(`five nodes start at once on ${says}: one migrates, and none is ready before that`, { skip }, async t => {
    await upstream.reset()
    const postgres = await (await postgresServer()).database()
    if (version > 0) await migrate(postgres, migrations.slice(0, version))
    const start = async () => {
      const gateway = await startGateway(t, { providers, config: { endpoints, stores: { postgres } } })
      const [applied] = await rowsOf<{ version: number }>(
        postgres,
        'SELECT max(version) AS version FROM schema_versions',
      )
      return [
        applied!.version,
        (await gateway.admin('GET', '/ready')).status,
        await gateway.chat('Hi', as(gateway)),
      ] as const
    }
    // One of them makes the first key, and tells it alone.
    const as = ({ key }: Gateway) => (key ? {} : { authorization: 'Bearer none' })
    const started = await Promise.all(Array.from({ length: 5 }, start))
    t.strictSame(
      started.map(([version, ready]) => [version, ready]),
      Array.from({ length: 5 }, () => [migrations.length, 200]),
    )
    const statuses = started.map(([, , { status }]) => status).sort()
    t.strictSame(statuses, [200, 401, 401, 401, 401], 'one has made the first key')
    const applied = await rowsOf(postgres, 'SELECT version FROM schema_versions ORDER BY version')
    t.strictSame(
      applied,
      version > 0 ? [{ version }, { version: migrations.length }] : [{ version: migrations.length }],
    )
    t.strictSame(await rowsOf(postgres, 'SELECT count(*)::int AS count FROM keys'), [{ count: 1 }])
    t.equal((await upstream.record()).length, 1, 'at rest no provider is asked')
  })
}

t.test('three nodes that are restarted in turn fail no request', { skip, timeout: 900_000 }, async t => {
  await upstream.reset()
  await upstream.script('a', [{ chunks: ['one ', 'two ', 'six ', 'ten '], chunkDelayMs: 20 }])
  const postgres = await (await postgresServer()).database()
  // No client keeps an idle connection as long as that, so none is closed as it is used again.
  const server = { drain: '20s', drain_delay: `${4 * IDLE_MS}ms` }
  const options = { providers, config: { server, endpoints, stores: { postgres } } }
  const first = await startGateway(t, options)
  const gateways = [first, await startGateway(t, options), await startGateway(t, options)]
  const balancer = new Balancer(gateways)
  t.teardown(() => balancer.close())
  const { ask, close } = clients(await balancer.listen(), first.key)
  const { failures, broken, times } = await rollUnderLoad({
    ...{ nodes: gateways, ...ROLLING, ask },
    async restart(gateway) {
      await gateway.restart()
      await balancer.ready(gateway)
    },
  })
  await close()
  t.strictSame(broken, [], 'no answer that has begun is cut')
  // On a busy machine a connection may take longer than a node or a client waits for it.
  t.comment([...new Set(failures)].slice(0, 5).join('\n'))
  timing(t, { id: 'NP-06', what: 'requests that failed', value: failures.length, unit: '', atMost: 0 })
  figure(t, { id: 'NP-06', what: 'restarts of three nodes in turn', value: 3 * ROLLING.rounds, unit: '' })
  figure(t, { id: 'NP-06', what: 'requests answered meanwhile', value: times.length, unit: '', atLeast: 1 })
  t.strictSame(await commandsOf(first)('usage.check'), { differences: [] })
  const [charged] = await rowsOf<{ count: number }>(
    postgres,
    "SELECT count(*)::int AS count FROM requests WHERE outcome = 'ok'",
  )
  t.ok(charged!.count >= times.length, 'each of them has its row')
  for (const gateway of gateways) await checkInvariants(t, gateway, upstream)
})

t.test('nodes outlive their database', { skip, timeout: 300_000 }, async t => {
  await upstream.reset()
  const server = await startPostgres({ fsync: true })
  const postgres = await server.database()
  const options = { providers, config: { endpoints, stores: { postgres } } }
  const first = await startGateway(t, options)
  const second = await startGateway(t, options)
  const as = { authorization: `Bearer ${first.key}` }
  for (const gateway of [first, second]) t.equal((await gateway.chat('Hi', as)).status, 200)
  await upstream.script('a', [{ chunks: ['one ', 'two '], hold: 1 }])
  const running = await first.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'Count' }] }, as)
  t.equal(running.status, 200)

  await server.crash()
  await upstream.release('a')
  const text = await running.text()
  t.match(text, /"code":\s*503|billing_unavailable/, 'an answer that cannot be charged says so')
  for (const gateway of [first, second]) {
    const refused = await gateway.chat('Hi', as)
    t.equal(refused.status, 503)
    t.ok(Number(refused.headers.get('retry-after')) > 0, 'a client knows when to ask again')
    t.match(await refused.json(), { error: { code: /^(?:billing|store)_unavailable$/ } })
    const unknown = await gateway.chat('Hi', { authorization: 'Bearer mgw_unknown' })
    t.equal(unknown.status, 503, 'a key that is not cached is not called wrong')
    t.ok(Number(unknown.headers.get('retry-after')) > 0)
    t.equal((await gateway.admin('GET', '/live')).status, 200)
    const ready = await gateway.admin('GET', '/ready')
    t.equal(ready.status, 503)
    t.match(await ready.json(), { reason: 'the database is down' })
    t.equal((await fetch(gateway.url)).status, 503)
  }

  await server.start()
  await upstream.script('a', [{}])
  for (const gateway of [first, second]) {
    while ((await gateway.admin('GET', '/ready')).status !== 200) await pause()
    t.equal((await gateway.chat('Hi', as)).status, 200, 'it serves again without a restart')
    while (!gateway.stderr().includes('"database reachable"')) await pause()
    t.equal(gateway.stderr().split('"database unreachable"').length, 2, 'the log says once that it was away')
  }
  const cut = "SELECT outcome, charged > 0 AS charged FROM requests WHERE outcome <> 'ok'"
  while ((await rowsOf(postgres, cut)).length === 0) await pause()
  t.strictSame(
    await rowsOf(postgres, cut),
    [{ outcome: 'error', charged: true }],
    'what was delivered is charged, once',
  )
  t.strictSame(await commandsOf(first)('usage.check'), { differences: [] })
  for (const gateway of [first, second]) await checkInvariants(t, gateway, upstream)
})
