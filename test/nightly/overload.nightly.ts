/** Three times as much as there is room for, for minutes: what is served is served well, the rest is told so at once. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { clients, pace, question } from './load.ts'

/**
 * The capacity is that of the places and of a provider that takes its time: a load generator on the same cores would
 * measure itself when it was that of the processor.
 */
const IN_FLIGHT = 50
/** Half a turn of those: who waits has his answer in one and a half times the time of one who does not. */
const QUEUE = IN_FLIGHT / 2
const PROVIDER_MS = 250
const MEASURE_MS = 10_000
const OVERLOAD_MS = Number(process.env.OVERLOAD_SECONDS ?? 300) * 1000
const TIMES = 3
/** Of the capacity: nobody waits for anybody. */
const UNLOADED = 0.1

/** A provider that gives every answer after `PROVIDER_MS`. */
async function startProvider(t: Test): Promise<string> {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const answer = JSON.stringify({ id: 'x', object: 'chat.completion', model: 'test-1', choices, usage })
  const server = createServer((req, res) => {
    req.resume().once('end', () => {
      setTimeout(() => res.writeHead(200, { 'content-type': 'application/json' }).end(answer), PROVIDER_MS)
    })
  })
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

t.test(`OB-12 at ${TIMES} times the capacity as much is served, and soon`, async t => {
  const gateway = await startGateway(t, {
    providers: { a: { base_url: await startProvider(t), models: [testMapping] } },
    config: {
      endpoints: {
        chat: {
          ratelimit: { rpm: 10_000_000 },
          admission: { in_flight: IN_FLIGHT, queue: QUEUE, org_share: 1 },
        },
      },
    },
  })
  const { ask, close } = clients(gateway.url, gateway.key)
  const body = question('test')
  const load = async (rate: number, ms: number) => {
    const served: number[] = []
    const refused: number[] = []
    const others: Record<string, number> = {}
    const start = performance.now()
    await pace(rate, ms, async () => {
      const { status, ms, error = `${status}` } = await ask(body)
      if (status === 200) served.push(ms)
      else if (status === 529) refused.push(ms)
      else others[error] = (others[error] ?? 0) + 1
    })
    return { served, refused, others, seconds: (performance.now() - start) / 1000 }
  }
  /** Requests a second when each place has its client, who asks again as soon as he has his answer. */
  const saturate = async () => {
    let served = 0
    const start = performance.now()
    const client = async () => {
      while (performance.now() - start < MEASURE_MS) if ((await ask(body)).status === 200) served++
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, client))
    return (served * 1000) / (performance.now() - start)
  }
  await saturate()
  const capacity = await saturate()
  const calm = await load(capacity * UNLOADED, MEASURE_MS)
  const { served, refused, others, seconds } = await load(capacity * TIMES, OVERLOAD_MS)
  await close()

  const told = (what: string, value: number, unit: string, bounds: object = {}) =>
    figure(t, { id: 'OB-12', what, value, unit, ...bounds })
  const unloaded = percentile(calm.served, 0.99)
  told('capacity', capacity, 'requests/s')
  told('offered', (served.length + refused.length) / seconds, 'requests/s')
  told('served, of the capacity', (100 * served.length) / seconds / capacity, '%', { atLeast: 85 })
  told('p99 of an answer, unloaded', unloaded, 'ms')
  told('p99 of an answer, overloaded', percentile(served, 0.99), 'ms', { atMost: Math.round(2 * unloaded) })
  told('p50 of a refusal', percentile(refused, 0.5), 'ms')
  told('p99 of a refusal', percentile(refused, 0.99), 'ms')
  t.strictSame(others, {}, 'who is not served is told 529, and nothing else')
  await checkInvariants(t, gateway)
})
