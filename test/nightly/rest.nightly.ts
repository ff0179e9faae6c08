/** Three nodes at rest: they ask no provider, and keep to their connections. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { needsRedis, redisFor } from '../helpers/redis.ts'
import { startUpstream } from '../helpers/upstream.ts'

/** Longer than any interval by which nodes look after circuits, jobs and each other. */
const REST_MS = 65_000
const CONNECTIONS = "SELECT count(*) AS count FROM pg_stat_activity WHERE application_name = 'model-gateway'"

const skip = withoutPostgres || needsRedis.skip
t.test('NP-12 three nodes at rest ask no provider, and keep to their connections', { skip, timeout: 0 }, async t => {
  const upstream = await startUpstream(t)
  const server = await postgresServer()
  const stores = { postgres: await server.database(), redis: (await redisFor(t)).address }
  const providers = { a: { base_url: upstream.url('a') }, b: { base_url: upstream.url('b') } }
  // One of them makes the first key.
  const first = await startGateway(t, { providers, config: { stores } })
  const others = await Promise.all([1, 2].map(() => startGateway(t, { providers, config: { stores } })))
  const nodes = [first, ...others]
  // The provider that fails has an open circuit from then on.
  await upstream.script('a', [{ status: 500 }])
  const as = { authorization: `Bearer ${first.key}` }
  for (const node of nodes) for (let sent = 0; sent < 10; sent++) await (await node.chat('Hi', as)).text()
  const before = (await upstream.record()).length
  await sleep(REST_MS)
  const asked = (await upstream.record()).length - before
  figure(t, { id: 'NP-12', what: 'calls of providers within 65 s of rest', value: asked, unit: '', atMost: 0 })
  const [open] = (await server.run(CONNECTIONS)) as { count: bigint }[]
  figure(t, { id: 'NP-12', what: 'connections of three at rest', value: Number(open!.count), unit: '', atMost: 18 })
  t.ok(before >= 30, 'they had asked before')
  await checkInvariants(t, first, upstream)
})
