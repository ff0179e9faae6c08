/** Two gateways on one database, restarted in turn behind a balancer: no client sees it. */
import { join } from 'node:path'
import t from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { Balancer } from './balancer.ts'
import { clients, IDLE_MS, pace, question } from './load.ts'

const ROUNDS = 5
/** As the catalogue asks for; a busy machine may have less to give. */
const REQUESTS_PER_SECOND = Number(process.env.ROLLING_RPS ?? 300)
const SHARE_OF_STREAMS = 0.7

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

  const failures: string[] = []
  const times: number[] = []
  let rolling = true
  const start = performance.now()
  const send = async (n: number) => {
    const stream = n % 10 < SHARE_OF_STREAMS * 10
    const { status, text, ms, error } = await ask(question('test', { stream }))
    const whole = stream
      ? text.trimEnd().endsWith('data: [DONE]') && !text.includes('"error"')
      : text.includes('"finish_reason":"stop"')
    if (status === 200 && whole) times.push(ms)
    else failures.push(`${status} ${error ?? text.slice(-500)}`)
  }
  const roll = async () => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const gateway of [one, two]) {
        await gateway.restart()
        await balancer.ready(gateway)
      }
    }
    rolling = false
  }
  await Promise.all([roll(), pace(REQUESTS_PER_SECOND, () => rolling, send)])
  const seconds = (performance.now() - start) / 1000
  await close()
  t.strictSame([...new Set(failures)].slice(0, 5), [])
  figure(t, { id: 'SD-04', what: 'restarts', value: 2 * ROUNDS, unit: '' })
  figure(t, { id: 'SD-04', what: 'requests per second', value: (times.length + failures.length) / seconds, unit: '' })
  figure(t, { id: 'SD-04', what: 'requests that failed', value: failures.length, unit: '', atMost: 0 })
  figure(t, { id: 'SD-04', what: 'p99 of a request', value: percentile(times, 0.99), unit: 'ms' })
  t.strictSame(await (await one.admin('POST', '/commands/usage.check')).json(), { differences: [] })
  for (const gateway of [one, two]) await checkInvariants(t, gateway, upstream)
})
