/** Configuration that changes all the time: hundreds of times under full load, and a thousand times with a module. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { percentile } from '../bench/stats.mjs'
import { figure } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { clients, pace, question } from './load.ts'

const RELOADS = 500
const RELOADS_PER_SECOND = 20
/** What the catalogue asks for; a machine that plays clients, provider and gateway at once may have less to give. */
const REQUESTS_PER_SECOND = Number(process.env.RELOAD_RPS ?? 1000)
const STREAMS = 50
const MODULE_RELOADS = 1000
const MODULE_WARM = 100
const MODULE_BYTES = 13_000
/** An even number. */
const LOOKS = 10
const MIB = 1024 * 1024

/** Nothing but reloading is looked at. */
const config = { endpoints: { chat: { ratelimit: { rpm: 10_000_000 }, admission: { org_share: 1, lag: '60s' } } } }
const chunks = ['one ', 'two ', 'six ', 'ten ']
const mapping = (n: number) => ({ ...testMapping, pricing: { prompt: n % 2 ? '3' : '1', completion: '2' } })

async function reload(gateway: Gateway): Promise<{ restartNeeded: string[] }> {
  const answer = await gateway.admin('POST', '/reload')
  if (answer.status !== 200) throw new Error(await answer.text())
  return (await answer.json()) as { restartNeeded: string[] }
}

t.test(`CF-04 ${RELOADS} reloads at ${RELOADS_PER_SECOND} a second under load fail no request`, async t => {
  const upstream = await startUpstream(t)
  await upstream.script('a', [{ usage: { prompt: 100, completion: 10 } }])
  await upstream.script('long', [{ chunks, hold: 2 }])
  const gateway = await startGateway(t, {
    providers: {
      a: { base_url: upstream.url('a'), models: [mapping(0)] },
      long: { base_url: upstream.url('long'), models: [{ ...testMapping, model: 'long' }] },
    },
    config,
  })
  const messages = [{ role: 'user', content: 'Hi' }]
  const streams = await Promise.all(
    Array.from({ length: STREAMS }, () => gateway.chat({ model: 'long', stream: true, messages })),
  )
  const { ask, close } = clients(gateway.url, gateway.key)
  const failures: unknown[] = []
  const costs = new Set<number>()
  const times: number[] = []
  const start = performance.now()
  let seconds = 0
  const reloads = async () => {
    for (let n = 1; n <= RELOADS; n++) {
      await gateway.writeProvider('a', { name: `A ${n}`, base_url: upstream.url('a'), models: [mapping(n)] })
      await reload(gateway)
      await sleep(start + (n * 1000) / RELOADS_PER_SECOND - performance.now())
    }
    seconds = (performance.now() - start) / 1000
  }
  const send = async () => {
    const answer = await ask(question('test'))
    if (answer.status !== 200) {
      failures.push(answer)
      return
    }
    times.push(answer.ms)
    costs.add((JSON.parse(answer.text) as { usage: { cost: number } }).usage.cost)
  }
  await Promise.all([reloads(), pace(REQUESTS_PER_SECOND, () => seconds === 0, send)])
  const elapsed = (performance.now() - start) / 1000
  await upstream.release('long')
  let cut = 0
  for (const stream of streams) {
    const { data, terminator } = await readEvents(stream)
    if (terminator !== '[DONE]' || textOf(data) !== chunks.join('')) cut++
  }
  await close()
  t.strictSame(failures.slice(0, 3), [])
  t.strictSame([...costs].sort(), [0.00012, 0.00032], 'every answer has the price of one version')
  const told = (what: string, value: number, unit = '', bounds = {}) =>
    figure(t, { id: 'CF-04', what, value, unit, ...bounds })
  told('reloads per second', RELOADS / seconds)
  told('requests per second meanwhile', (times.length + failures.length) / elapsed)
  told('requests that failed', failures.length, '', { atMost: 0 })
  told('streams that were cut', cut, `of ${STREAMS}`, { atMost: 0 })
  told('p99 of a request', percentile(times, 0.99), 'ms')
  await checkInvariants(t, gateway, upstream)
})

/** A translator of the operator's, in its `n`th edition. */
const wire = (n: number) => `// Edition ${n} ${'.'.repeat(MODULE_BYTES)}
export const plugin = { wires: [{
  op: 'chat',
  wire: 'acme.chat',
  encode: () => ({ path: '/chat/completions', body: { edition: ${n} } }),
  decoder: () => ({ done: true, frame: () => [], end: () => [] }),
  error: () => new Error('none'),
}] }
`

t.test(`CF-05 ${MODULE_RELOADS} reloads with a changed module leave nothing behind`, async t => {
  const MODULE = 'my-plugins/acme.mjs'
  const provider = { base_url: 'http://127.0.0.1:9/v1', wires: { chat: 'acme.chat' } }
  const gateway = await startGateway(t, {
    providers: { a: provider },
    config: { ...config, catalog: { plugins: '../my-plugins' } },
    env: inspected,
    files: { [MODULE]: wire(0) },
  })
  let reported = 0
  // Not those of the process: a kind of garbage collection that had not been due before adds its lines.
  const series = async () => (await gateway.metrics()).match(/^gateway_/gm)!.length
  const state = async () => ({ ...(await memory(gateway)), open: await gateway.descriptors(), series: await series() })
  const change = async (from: number, to: number) => {
    for (let n = from; n < to; n++) {
      await gateway.writeFile(MODULE, wire(n))
      await gateway.writeProvider('a', { name: `A ${n}`, ...provider })
      reported += (await reload(gateway)).restartNeeded.length
    }
    return state()
  }
  // What is resident moves by some MiB from one look to the next: the middle ones of several are compared.
  const looks = [await change(1, MODULE_WARM)]
  const step = (MODULE_RELOADS + 1 - MODULE_WARM) / (LOOKS - 1)
  for (let at = 1; at < LOOKS; at++) {
    looks.push(await change(Math.ceil(MODULE_WARM + (at - 1) * step), Math.ceil(MODULE_WARM + at * step)))
  }
  t.comment(JSON.stringify(looks))
  const middle = (of: typeof looks) =>
    percentile(
      of.map(({ rss }) => rss).sort((a, b) => a - b),
      0.5,
    )
  const [warm, end] = [looks[0]!, looks.at(-1)!]
  const rise = middle(looks.slice(-LOOKS / 2)) - middle(looks.slice(0, LOOKS / 2))
  t.equal(reported, MODULE_RELOADS, 'each is told to need a restart')
  const told = (what: string, value: number, unit: string, bounds: object) =>
    figure(t, { id: 'CF-05', what, value, unit, ...bounds })
  told('resident memory per reload', (rise * MIB) / 1024 / (step * (LOOKS / 2)), 'KiB', { atMost: 5 })
  told('resident memory in all', end.rss - warm.rss, 'MiB', { atMost: 20 })
  told('heap in all', end.heap - warm.heap, 'MiB', { atMost: 2 })
  told('open files', end.open - warm.open, '', { atMost: 5 })
  told('lines of /metrics', end.series - warm.series, '', { atMost: 0 })
  t.notMatch(gateway.stderr(), /MaxListenersExceeded/)
  t.equal(metric(await gateway.metrics(), 'gateway_config_reload_successful'), 1)
  await checkInvariants(t, gateway)
})
