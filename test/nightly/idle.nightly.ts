/** Connections that ask nothing: ten thousand of them are kept, cost little, and keep nobody waiting. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { startConnections } from './clients.ts'

const MIB = 1024 * 1024
const CONNECTIONS = 10_000
const PROCESSES = 2
/** For sockets to providers, of which there are none here. */
const SPARE = 2_500
const PROBES = 300
const PROBE_MS = 20

// Node raises the soft limit to the hard one by itself.
const limit = Number(/^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
const skip = limit < CONNECTIONS + SPARE ? `a process may open ${limit} files here` : false

t.test('OB-02 ten thousand idle connections cost at most 20 kB each', { skip }, async t => {
  const gateway = await startGateway(t, {
    providers: { a: { base_url: 'http://127.0.0.1:9/v1' } },
    env: inspected,
    config: { server: { max_connections: CONNECTIONS + SPARE } },
  })
  const probe = async () => {
    const start = performance.now()
    const { status } = await gateway.get('/')
    return status === 200 ? performance.now() - start : Number.POSITIVE_INFINITY
  }
  const probes = async () => {
    const times: number[] = []
    for (let n = 0; n < PROBES; n++) {
      times.push(await probe())
      await sleep(PROBE_MS)
    }
    return times
  }
  // The code is compiled, and the heap has its size.
  await probes()
  const before = (await memory(gateway)).rss * MIB
  const alone = await gateway.descriptors()
  const clients = await Promise.all(
    Array.from({ length: PROCESSES }, () => startConnections(t, 'idle', gateway.port, CONNECTIONS / PROCESSES)),
  )
  const times = await probes()
  t.comment(`resident before: ${Math.round(before / MIB)} MiB`)
  const each = ((await gateway.rss()) - before) / CONNECTIONS
  figure(t, { id: 'OB-02', what: 'memory of an idle connection', value: each / 1000, unit: 'kB', atMost: 20 })
  figure(t, { id: 'OB-02', what: 'p99 of GET / among them', value: percentile(times, 0.99), unit: 'ms', atMost: 20 })
  const ends = await Promise.all(clients.map(stop => stop()))
  const kept = ends.reduce((sum, { open }) => sum + open, 0)
  figure(t, { id: 'OB-02', what: 'idle connections that were kept', value: kept, unit: '', atLeast: CONNECTIONS })
  while ((await gateway.descriptors()) > alone + 20) await sleep(20)
  await checkInvariants(t, gateway)
})
