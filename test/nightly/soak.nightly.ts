/** A gateway that serves everything at once for a long time, with all that goes wrong: it does not grow. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { random } from '../helpers/random.ts'
import { readEvents } from '../helpers/sse.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'
import { pace } from './load.ts'

const MINUTES = Number(process.env.NIGHTLY_MINUTES ?? 60)
const REQUESTS_PER_SECOND = Number(process.env.SOAK_RPS ?? 40)
/** Of the time; what is kept for a while has its size then. */
const WARM = 1 / 4
const SAMPLE_MS = 20_000
const RELOAD_MS = 30_000
const FAULT_MS = 1000
/** The provider forgets what it has seen, lest it be what grows. */
const FORGET_MS = 60_000
/** Longer than any idle connection is kept. */
const QUIET_MS = 80_000
const SESSIONS = 100
const MIB = 1024 * 1024
/** What SQLite, as better-sqlite3 builds it, keeps of a database in memory. */
const PAGE_CACHE_MIB = 16
const chunks = 'an answer that comes in many small pieces, as answers do'.split(/(?= )/)

const upstream = await startUpstream(t)
const serve = (id: string, models: string[], more: object = {}) => ({
  [id]: {
    base_url: upstream.url(id),
    models: models.map(model => ({ ...testMapping, model, id: `${model}-1` })),
    ...more,
  },
})
const gateway = await startGateway(t, {
  providers: {
    ...serve('good', ['test', 'slow']),
    ...serve('flaky', ['shaky'], { priority: 2 }),
    ...serve('spare', ['shaky']),
    ...serve('cut', ['cut']),
  },
  env: inspected,
  config: {
    endpoints: {
      chat: {
        ratelimit: { rpm: 10_000_000 },
        admission: { org_share: 1, lag: '60s' },
        // What fails is asked again and again, because it is cheap.
        route: {
          circuit: { failures: 1000, ratio: 1 },
          weights: { uptime: 0, throughput: 0, latency: 0 },
          thresholds: { uptime_penalty: 0 },
          preference: { enabled: false },
        },
      },
      messages: { ratelimit: { rpm: 10_000_000 }, admission: { org_share: 1, lag: '60s' } },
    },
  },
})

const failing: Step[] = [
  { status: 429, headers: { 'retry-after': '1' } },
  { status: 500 },
  { fault: 'reset' },
  { fault: 'error-first-event' },
  { fault: 'html' },
  {},
]
let turn = 0

async function script(): Promise<void> {
  await upstream.script('good', [{ chunks, chunkDelayMs: 5 }])
  await upstream.script('spare', [{ chunks }])
  await upstream.script('cut', [{ chunks, fault: 'fin', afterChunks: 3 }])
  await fail()
}

/** Each of the faults in turn. */
async function fail(): Promise<void> {
  await upstream.script('flaky', [failing[turn++ % failing.length]!])
}

const failures: unknown[] = []
const done: Record<string, number> = {}
/** That the faults were there. */
const seen = { broken: 0, failovers: 0, aborted: 0 }
const next = random(1)
const messages = [{ role: 'user', content: 'Tell me something.' }]

/** What a client does, how often of a hundred times, and what it must get. */
const kinds: { says: string; share: number; run: () => Promise<boolean> }[] = [
  { says: 'streams', share: 60, run: () => streamed('test') },
  { says: 'streams of the other codec', share: 10, run: () => streamedMessages() },
  { says: 'whole answers', share: 20, run: () => whole('test') },
  { says: 'aborts', share: 4, run: () => aborted() },
  { says: 'failovers', share: 4, run: () => whole('shaky') },
  { says: 'cut streams', share: 2, run: () => streamed('cut', true) },
]

const session = () => ({ 'x-session-id': `session-${Math.floor(next() * SESSIONS)}` })

async function streamed(model: string, breaks = false): Promise<boolean> {
  const response = await gateway.chat({ model, messages, stream: true }, session())
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  const { data, terminator } = await readEvents(response)
  const broken = data.some(({ error }) => error)
  if (broken) seen.broken++
  // While the provider has just forgotten its script it breaks nothing.
  return terminator === '[DONE]' && (breaks || !broken)
}

async function streamedMessages(): Promise<boolean> {
  const response = await gateway.post('/v1/messages', { model: 'test', messages, stream: true, max_tokens: 100 })
  return response.status === 200 && (await readEvents(response)).terminator === 'message_stop'
}

async function whole(model: string): Promise<boolean> {
  const response = await gateway.chat({ model, messages }, session())
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  if (text.includes('"succeeded":false')) seen.failovers++
  return text.includes('"finish_reason":"stop"')
}

async function aborted(): Promise<boolean> {
  const client = new AbortController()
  const timer = setTimeout(() => client.abort(), next() * chunks.length * 5)
  const answer = gateway.chat({ model: 'slow', messages, stream: true }, session(), client.signal)
  const read = await answer.then(readEvents).catch(() => undefined)
  if (read?.terminator !== '[DONE]') seen.aborted++
  clearTimeout(timer)
  return true
}

async function send(): Promise<void> {
  let chance = next() * 100
  const kind = kinds.find(({ share }) => {
    chance -= share
    return chance < 0
  })!
  try {
    if (await kind.run()) done[kind.says] = (done[kind.says] ?? 0) + 1
    else failures.push({ kind: kind.says, error: 'not what it should be' })
  } catch (error) {
    failures.push({ kind: kind.says, error: String(error) })
  }
}

interface Sample {
  minute: number
  heap: number
  rss: number
  lag: number
}
const samples: Sample[] = []
const began = performance.now()
let reloads = 0

/** Everything that happens beside the requests, each in its own time, for so long. */
async function load(ms: number): Promise<void> {
  const jobs: [number, () => Promise<unknown>][] = [
    [FAULT_MS, fail],
    [SAMPLE_MS, sample],
    [RELOAD_MS, reload],
    [FORGET_MS, () => upstream.reset().then(script)],
  ]
  let running = true
  const every = async ([pause, run]: (typeof jobs)[number]) => {
    let due = performance.now() + pause
    while (running) {
      await sleep(100)
      if (performance.now() < due) continue
      await run()
      due += pause
    }
  }
  const beside = jobs.map(every)
  await pace(REQUESTS_PER_SECOND, ms, send)
  running = false
  await Promise.all(beside)
}

async function sample(): Promise<void> {
  const text = await gateway.metrics()
  const lag = (metric(text, 'gateway_event_loop_lag_seconds', { quantile: '0.99' }) ?? 0) * 1000
  samples.push({ minute: (performance.now() - began) / 60_000, ...(await memory(gateway)), lag })
}

async function reload(): Promise<void> {
  const prompt = ++reloads % 2 ? '5' : '3'
  const models = [{ ...testMapping, model: 'shaky', id: 'shaky-1', pricing: { prompt, completion: '2' } }]
  await gateway.writeProvider('spare', { name: `Spare ${reloads}`, base_url: upstream.url('spare'), models })
  const answer = await gateway.admin('POST', '/reload')
  if (answer.status !== 200) failures.push({ kind: 'reload', error: await answer.text() })
  await answer.text().catch(() => undefined)
}

/** What is there when nobody has asked for a while; `pages` are those of the database, whose cache fills as it grows. */
async function quiet(): Promise<{ heap: number; rss: number; pages: number; open: number }> {
  await sleep(QUIET_MS)
  const { size } = await stat(join(gateway.dir, 'data/gateway.db'))
  const pages = Math.min(PAGE_CACHE_MIB, size / MIB)
  return { ...(await memory(gateway)), pages, open: await gateway.descriptors() }
}

/** MiB per ten minutes, by least squares. */
function slope(of: (sample: Sample) => number, given: readonly Sample[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const minute = mean(given.map(sample => sample.minute))
  const level = mean(given.map(of))
  const above = given.reduce((sum, sample) => sum + (sample.minute - minute) * (of(sample) - level), 0)
  return (10 * above) / given.reduce((sum, sample) => sum + (sample.minute - minute) ** 2, 0)
}

t.test(`SK-02 ${MINUTES} minutes of mixed load with aborts, faults and reloads leave no slope`, async t => {
  await script()
  await load(MINUTES * 60_000 * WARM)
  const warm = await quiet()
  const from = samples.length
  await load(MINUTES * 60_000 * (1 - WARM))
  const end = await quiet()
  const later = samples.slice(from)
  for (const { minute, heap, rss, lag } of samples)
    t.comment(
      `minute ${minute.toFixed(1)}: heap ${heap.toFixed(1)} MiB, rss ${rss.toFixed(1)} MiB, lag ${lag.toFixed(1)} ms`,
    )
  t.comment(JSON.stringify({ done, seen, reloads, warm, end, failures: failures.length }))
  t.strictSame([...new Set(failures.map(failure => JSON.stringify(failure)))].slice(0, 10), [])

  t.ok(seen.broken > 0 && seen.failovers > 0 && seen.aborted > 0, 'there were faults and aborts')
  const told = (what: string, value: number, unit: string, bounds: object = {}) =>
    figure(t, { id: 'SK-02', what, value, unit, ...bounds })
  told('minutes', MINUTES, '')
  told(
    'requests',
    Object.values(done).reduce((sum, count) => sum + count, 0),
    '',
  )
  told('requests that failed', failures.length, '', { atMost: 0 })
  told('reloads', reloads, '')
  told(
    'slope of the heap',
    slope(({ heap }) => heap, later),
    'MiB/10 min',
    { atMost: 1 },
  )
  told('resident memory after the warm-up', warm.rss, 'MiB')
  told('resident memory at the end', end.rss, 'MiB')
  const share = (100 * (end.rss - end.pages)) / (warm.rss - warm.pages)
  told('of that, without cached pages of the database', share, '%', { atMost: 110 })
  told('open files more than after the warm-up', end.open - warm.open, '', { atMost: 5 })
  const lags = later.map(({ lag }) => lag).sort((a, b) => a - b)
  told('median p99 of event-loop lag', lags[Math.floor(lags.length / 2)]!, 'ms', { atMost: 50 })
  t.strictSame(await (await gateway.admin('POST', '/commands/usage.check')).json(), { differences: [] })
  await checkInvariants(t, gateway, upstream)
})
