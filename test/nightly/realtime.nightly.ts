/** What a thousand open realtime sessions cost while little is said in them. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'

const SESSIONS = 1000
const WARM = 50
const AT_ONCE = 20
const IDLE_MS = 40_000
const MAX_KIB = 60
const MAX_LAG_MS = 30

t.test('a thousand idle sessions keep at most 60 kB each, and block no other request', async t => {
  const provider = await realtimeProvider(t)
  const many = { per_key: 5000, per_organization: 5000, per_process: 5000 }
  const gateway = await startGateway(t, {
    models: [
      { id: 'voice', name: 'voice', family: 'test', input: ['audio'], output: ['audio'], operations: ['realtime'] },
    ],
    providers: {
      acme: {
        base_url: provider.url,
        concurrency: 5000,
        wires: { realtime: 'openai.realtime' },
        models: [{ model: 'voice', id: 'rt-1', pricing: { prompt: '1', completion: '1' }, supports: ['realtime'] }],
      },
    },
    config: { realtime: many, endpoints: { realtime: { ratelimit: { rpm: 1_000_000 } } } },
    env: inspected,
  })
  const clients: WebSocket[] = []
  const open = async () => {
    const url = `${gateway.url.replace('http', 'ws')}/v1/realtime?model=voice`
    const client = new WebSocket(url, { headers: { authorization: `Bearer ${gateway.key}` } })
    clients.push(client)
    await once(client, 'message')
  }
  const openAll = async (count: number) => {
    for (let opened = 0; opened < count; opened += AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - opened) }, open))
    }
  }
  await openAll(WARM)
  const before = await memory(gateway)
  await openAll(SESSIONS)
  const after = await memory(gateway)
  const kib = ((after.rss - before.rss) * 1024) / SESSIONS
  const heap = ((after.heap - before.heap) * 1024) / SESSIONS
  figure(t, { id: 'realtime', what: 'resident memory of an idle session', value: kib, unit: 'kB', atMost: MAX_KIB })
  figure(t, { id: 'realtime', what: 'heap of it', value: heap, unit: 'kB' })

  // Two rounds of pings and more.
  await gateway.metrics()
  await sleep(IDLE_MS)
  const lag = /^gateway_event_loop_lag_seconds\{quantile="0\.99"\} ([\d.e-]+)/m.exec(await gateway.metrics())?.[1]
  figure(t, {
    ...{ id: 'realtime', what: 'event loop, 99th percentile of its delay', unit: 'ms', atMost: MAX_LAG_MS },
    value: Number(lag) * 1000,
  })
  t.equal(clients.filter(({ readyState }) => readyState === WebSocket.OPEN).length, SESSIONS + WARM, 'all are open')
  const upstream = provider.sessions.map(({ ws }) => ws)
  const ended = [...clients, ...upstream].map(end => once(end, 'close'))
  for (const client of clients) client.close()
  await Promise.all(ended)
  t.comment(`MiB resident before ${Math.round(before.rss)}, with them ${Math.round(after.rss)}`)
  await checkInvariants(t, gateway)
})
