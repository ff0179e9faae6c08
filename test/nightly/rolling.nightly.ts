/** Gateways on one database, restarted in turn behind a balancer: no client sees it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { percentile } from '../bench/stats.mjs'
import { commandsOf } from '../helpers/commands.ts'
import { figure } from '../helpers/figure.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { freePort, postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { HOST, proxies, startProxy } from '../helpers/proxies.ts'
import { needsRedis, redisFor } from '../helpers/redis.ts'
import { root } from '../helpers/sources.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { Balancer } from './balancer.ts'
import { clients, IDLE_MS } from './load.ts'
import { type Rolled, rollUnderLoad } from './rolling.ts'

const ROUNDS = 5
/** Each takes longer: nodes drain as `deploy` has it. */
const NODE_ROUNDS = Number(process.env.ROLLING_ROUNDS ?? 2)
/** As the catalogue asks for; a busy machine may have less to give. */
const REQUESTS_PER_SECOND = Number(process.env.ROLLING_RPS ?? 300)

interface Deployed {
  readonly server: { readonly drain: string; readonly drain_delay: string }
}

t.test(`SD-04 ${ROUNDS} rolling restarts of two gateways under load fail no request`, async t => {
  const upstream = await startUpstream(t)
  await upstream.script('a', [{ chunks: ['one ', 'two ', 'six ', 'ten '], chunkDelayMs: 20 }])
  const providers = { a: { base_url: upstream.url('a') } }
  // No client keeps an idle connection as long as that, so none can be closed as it is used again.
  const server = { drain: '10s', drain_delay: `${4 * IDLE_MS}ms` }
  const endpoints = { chat: { ratelimit: { rpm: 10_000_000 }, admission: { org_share: 1, lag: '60s' } } }
  const one = await startGateway(t, { providers, config: { server, endpoints } })
  const stores = { sqlite: join(one.dir, 'data/gateway.db') }
  const two = await startGateway(t, { providers, config: { server, endpoints, stores } })
  const balancer = new Balancer([one, two])
  t.teardown(() => balancer.close())
  const { ask, close } = clients(await balancer.listen(), one.key)

  const rolled = await rollUnderLoad({
    ...{ nodes: [one, two], rounds: ROUNDS, perSecond: REQUESTS_PER_SECOND, ask },
    async restart(gateway) {
      await gateway.restart()
      await balancer.ready(gateway)
    },
  })
  await close()
  shown(t, 'SD-04', 2 * ROUNDS, rolled)
  t.strictSame(await (await one.admin('POST', '/commands/usage.check')).json(), { differences: [] })
  for (const gateway of [one, two]) await checkInvariants(t, gateway, upstream)
})

t.test(
  'three nodes on PostgreSQL and Redis behind nginx are restarted in turn and fail no request',
  { skip: withoutPostgres || needsRedis.skip || proxies.nginx.skip, timeout: 3_600_000 },
  async t => {
    const upstream = await startUpstream(t)
    await upstream.script('a', [{ chunks: ['one ', 'two ', 'six ', 'ten '], chunkDelayMs: 20 }])
    const { server } = parse(readFileSync(join(root, 'deploy/config/nodes.yaml'), 'utf8')) as Deployed
    const { drain, drain_delay } = server
    const stores = { postgres: await (await postgresServer()).database(), redis: (await redisFor(t)).address }
    const endpoints = { chat: { ratelimit: { rpm: 10_000_000 }, admission: { org_share: 1, lag: '60s' } } }
    const start = async () => {
      // nginx knows the address before the node is up again.
      const listen = `127.0.0.1:${await freePort()}`
      const config = { server: { drain, drain_delay, listen }, endpoints, stores }
      return await startGateway(t, { providers: { a: { base_url: upstream.url('a') } }, config })
    }
    // The first one makes the first key.
    const first = await start()
    const nodes = [first, ...(await Promise.all([start(), start()]))]
    const nginx = await startProxy(
      t,
      'nginx',
      nodes.map(({ port }) => port),
    )
    const tls = { servername: HOST, secureContext: createSecureContext({ ca: nginx.ca }) }
    const { ask, close } = clients(`https://127.0.0.1:${nginx.port}`, first.key, tls)
    const rounds = NODE_ROUNDS
    const restart = (node: Gateway) => node.restart()
    const rolled = await rollUnderLoad({ nodes, rounds, perSecond: REQUESTS_PER_SECOND, ask, restart })
    await close()
    const failed = nginx.log().match(/^.* status=(?!(?:\d+, )*200 ).*$/gm) ?? []
    t.strictSame(failed.slice(0, 5), [], 'nginx has no errors of nodes in its log')
    shown(t, 'NP-06', nodes.length * rounds, rolled)
    t.strictSame(await commandsOf(first)('usage.check'), { differences: [] })
    for (const node of nodes) await checkInvariants(t, node, upstream)
  },
)

function shown(t: Test, id: string, restarts: number, { failures, broken, times, rate }: Rolled): void {
  const failed = [...failures, ...broken]
  t.strictSame([...new Set(failed)].slice(0, 5), [])
  figure(t, { id, what: 'restarts', value: restarts, unit: '' })
  figure(t, { id, what: 'requests per second', value: rate, unit: '' })
  figure(t, { id, what: 'requests that failed', value: failed.length, unit: '', atMost: 0 })
  figure(t, { id, what: 'p99 of a request', value: percentile(times, 0.99), unit: 'ms' })
}
