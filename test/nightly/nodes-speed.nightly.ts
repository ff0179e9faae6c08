/** What a request takes longer with PostgreSQL and Redis than through a bare proxy, and what three nodes serve beside one. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { median, percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { needsRedis, redisFor } from '../helpers/redis.ts'
import { root } from '../helpers/sources.ts'
import { heard } from '../policy/parent.ts'
import { type Clients, clients, pace, question } from './load.ts'
import { serverMs } from './server-cpu.ts'

const NODES = 3
/** Alternating ones, lest a moment of the machine hits one side only. */
const RUNS = 5
const PER_SECOND = Number(process.env.NODES_RPS ?? 500)
const RUN_MS = 4_000
const WARM_UP = 6_000
/** Requests of a run of each node, and how many of them at a time. */
const [COUNT, AT_ONCE] = [3_000, 64]
const BODY = question('test')

/** Without these servers there is nothing to measure. */
const options = { skip: withoutPostgres || needsRedis.skip, timeout: 1_800_000 }

t.test(`PostgreSQL and Redis at ${PER_SECOND} requests a second`, options, async t => {
  const upstream = await child(t, 'upstream.mjs', '0')
  const floor = clients(await child(t, 'floor.mjs', upstream), 'none')
  const [node] = await startNodes(t, upstream, 1)
  const gateway = clients(node!.url, node!.key)
  for (const target of [floor, gateway]) await saturate(target, WARM_UP)
  const added: Record<'p50' | 'p99', number[]> = { p50: [], p99: [] }
  for (let run = 0; run < RUNS; run++) {
    const [base, times] = [await paced(floor), await paced(gateway)]
    added.p50.push(percentile(times, 0.5) - percentile(base, 0.5))
    added.p99.push(percentile(times, 0.99) - percentile(base, 0.99))
  }
  for (const target of [floor, gateway]) await target.close()
  figure(t, { id: 'NP-09', what: 'added time, p50', value: median(added.p50), unit: 'ms', atMost: 2.5 })
  figure(t, { id: 'NP-09', what: 'added time, p99', value: median(added.p99), unit: 'ms' })
})

t.test(`${NODES} nodes beside one, by their own CPU`, options, async t => {
  const nodes = await startNodes(t, await child(t, 'upstream.mjs', '0'), NODES)
  const all = nodes.map(({ url }) => clients(url, nodes[0]!.key))
  for (const one of all) await saturate(one, WARM_UP)
  const perRequest = async (count: number) => {
    const used = () => nodes.slice(0, count).reduce((sum, { pid }) => sum + serverMs(pid), 0)
    const before = used()
    await Promise.all(all.slice(0, count).map(one => saturate(one, COUNT)))
    return (used() - before) / (count * COUNT)
  }
  const [alone, together]: [number[], number[]] = [[], []]
  for (let run = 0; run < RUNS; run++) {
    alone.push(await perRequest(1))
    together.push(await perRequest(NODES))
  }
  for (const one of all) await one.close()
  const [one, each] = [median(alone), median(together)]
  figure(t, { id: 'NP-09', what: 'CPU of a request on one node', value: one * 1000, unit: 'µs' })
  figure(t, { id: 'NP-09', what: `CPU of a request on each of ${NODES}`, value: each * 1000, unit: 'µs' })
  figure(t, { id: 'NP-09', what: `${NODES} nodes serve, of one`, value: (NODES * one) / each, unit: '', atLeast: 2.7 })
})

/** Starts a program of the bench. Resolves with its address. */
async function child(t: Test, name: string, ...args: string[]): Promise<string> {
  const started = fork(join(root, 'test/bench', name), args)
  t.teardown(() => started.kill('SIGKILL'))
  return ((await heard(started)) as { url: string }).url
}

/** On a PostgreSQL that waits for its disk. The first node has the key. */
async function startNodes(t: Test, upstream: string, count: number): Promise<Gateway[]> {
  const postgres = await (await startPostgres({ fsync: true })).database()
  const stores = { postgres, redis: (await redisFor(t)).address }
  const endpoints = { chat: { ratelimit: { rpm: 100_000_000 }, admission: { org_share: 1, lag: '60s' } } }
  const providers = { a: { base_url: `${upstream}/v1`, concurrency: 100_000 } }
  const nodes: Gateway[] = []
  for (let n = 0; n < count; n++) nodes.push(await startGateway(t, { providers, config: { endpoints, stores } }))
  return nodes
}

async function saturate({ ask }: Clients, count: number): Promise<void> {
  let sent = 0
  const client = async () => {
    while (sent++ < count) await answered(ask)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
}

/** The milliseconds of each request. */
async function paced({ ask }: Clients): Promise<number[]> {
  const times: number[] = []
  await pace(PER_SECOND, RUN_MS, async () => times.push(await answered(ask)))
  return times
}

async function answered(ask: Clients['ask']): Promise<number> {
  const { status, text, error, ms } = await ask(BODY)
  if (status !== 200) throw new Error(error ?? `${status} ${text.slice(0, 500)}`)
  return ms
}
