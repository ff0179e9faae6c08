/** The end of the process: readiness first, then what runs, then the books; nobody is cut off in silence. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readBooks } from '../helpers/books.ts'
import { figure, timing } from '../helpers/figure.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { raw } from '../helpers/raw.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { type Step, startUpstream, type Upstream } from '../helpers/upstream.ts'

const STREAMS = 50
const WAITING = 20
const LEAVING = 20
/** Longer than a request takes on a machine that is busy. */
const DELAY_MS = 3000
/** Longer than the tests may take: what ends all the same did not wait for it. */
const NEVER = '1h'
const chunks = ['One ', 'two ', 'six ', 'ten ', 'and ', 'more', ' of ', 'it. ']

/** A gateway and its provider `a`, which plays `step`. */
async function pair(t: Test, server: object, step: Step = {}): Promise<{ gateway: Gateway; upstream: Upstream }> {
  const upstream = await startUpstream(t)
  await upstream.script('a', [step])
  const gateway = await startGateway(t, {
    providers: { a: { base_url: upstream.url('a') } },
    config: { server, endpoints: { chat: { admission: { lag: '60s' } } } },
    env: { NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/ending.cjs')}` },
  })
  return { gateway, upstream }
}
const ask = (gateway: Gateway, stream: boolean) =>
  gateway.chat({ model: 'test', stream, messages: [{ role: 'user', content: 'Hi' }] })

/** Rows of the books by their error, and how many of each are paid for. */
const rowsOf = (gateway: Gateway) =>
  readBooks(gateway, db =>
    db.prepare('SELECT error_code AS code, count(*) AS count, sum(cost > 0) AS paid FROM requests GROUP BY 1').all(),
  )
/** Messages of the log, in order. */
const messagesOf = (gateway: Gateway) =>
  gateway
    .stderr()
    .split('\n')
    .filter(Boolean)
    .map(line => (JSON.parse(line) as { msg: string }).msg)
const heldOf = (gateway: Gateway) => readBooks(gateway, db => db.prepare('SELECT count(*) FROM holds').pluck().get())

async function socketOf(gateway: Gateway, text = ''): Promise<{ socket: Socket; closed: Promise<number> }> {
  const socket = connect(gateway.port, '127.0.0.1').resume()
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  if (text !== '') socket.write(text)
  return { socket, closed: once(socket, 'close').then(() => performance.now()) }
}

t.test('SD-01 with 50 streams and 20 that wait, all end properly after SIGTERM, and the process by itself', async t => {
  const { gateway, upstream } = await pair(t, { drain: NEVER, drain_delay: `${DELAY_MS}ms` }, { chunks, hold: 4 })
  const streams = await Promise.all(Array.from({ length: STREAMS }, () => ask(gateway, true)))
  await upstream.script('a', [{ hold: 0 }])
  const waiting = Array.from({ length: WAITING }, () => ask(gateway, false))
  await upstream.record('a', { requests: STREAMS + WAITING })
  const idle = []
  for (let n = 0; n < 10; n++) {
    idle.push(await socketOf(gateway))
    idle.push(await socketOf(gateway, 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-'))
  }
  const kept = await socketOf(gateway, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n')
  await once(kept.socket, 'data')

  const at = performance.now()
  const exit = gateway.kill('SIGTERM')
  while ((await gateway.admin('GET', '/ready')).status !== 503) await pause()
  t.equal((await gateway.admin('GET', '/live')).status, 200)
  const late = await raw(gateway.port, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n', { responses: 1 })
  t.match([late.status, late.headers.connection], [200, 'keep-alive'], 'it still accepts')
  let latest = 0
  for (const { closed } of [...idle, kept]) {
    const ms = (await closed) - at
    t.ok(ms >= DELAY_MS - 20, `who asks nothing is let go after ${Math.round(ms)} ms`)
    latest = Math.max(latest, ms)
  }
  const what = 'idle connections are closed after the delay'
  timing(t, { id: 'SD-01', what, value: latest - DELAY_MS, unit: 'ms', atMost: 1000 })
  await t.rejects(raw(gateway.port, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n'), 'and nobody else comes in')
  t.equal(metric(await gateway.metrics(), 'gateway_requests_in_flight'), STREAMS + WAITING)

  await upstream.release('a')
  let whole = 0
  for (const response of streams) {
    const { data, terminator, broken } = await readEvents(response)
    if (t.strictSame([textOf(data), terminator, broken], [chunks.join(''), '[DONE]', false])) whole++
  }
  figure(t, { id: 'SD-01', what: 'streams that end properly after SIGTERM', value: whole, unit: '', atLeast: STREAMS })
  for (const answer of waiting) {
    const response = await answer
    t.strictSame([response.status, response.headers.get('connection')], [200, 'close'])
    await response.json()
  }
  const ended = performance.now()
  t.equal(await exit, 0)
  const value = performance.now() - ended
  timing(t, { id: 'SD-01', what: 'the end after the last answer', value, unit: 'ms', atMost: 2000 })
  t.match(gateway.stdout(), 'nothing is left to do', 'it ends by itself')
  t.strictSame(messagesOf(gateway), ['gateway started', 'gateway stops', 'gateway stopped'])
  t.strictSame(rowsOf(gateway), [{ code: null, count: STREAMS + WAITING, paid: STREAMS + WAITING }])
  t.equal(heldOf(gateway), 0)
})

t.test('SD-01 an answer that its client has yet to take is not cut off by the end', async t => {
  const text = '€'.repeat(4_000_000)
  const { gateway, upstream } = await pair(t, { drain: NEVER }, { text })
  const socket = connect(gateway.port, '127.0.0.1').pause()
  t.teardown(() => socket.destroy())
  const body = JSON.stringify({ model: 'test', messages: [{ role: 'user', content: 'Hi' }] })
  const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
  socket.write([...lines, 'Content-Type: application/json', `Content-Length: ${body.length}`, '', body].join('\r\n'))
  await upstream.record('a', { ended: 1 })
  await once(socket, 'readable')
  const exit = gateway.kill('SIGTERM')
  while ((await gateway.admin('GET', '/ready').catch(() => undefined))?.status === 200) await pause()
  // Longer than the last words of a connection may take.
  await sleep(1500)
  let taken = 0
  for await (const chunk of socket) taken += (chunk as Buffer).length
  t.ok(taken > Buffer.byteLength(text), `${taken} bytes came`)
  t.equal(await exit, 0)
  t.notMatch(gateway.stderr(), /MaxListenersExceeded/)
  t.strictSame(rowsOf(gateway), [{ code: null, count: 1, paid: 1 }])
})

t.test(
  'SD-02 a stream that is longer than the drain ends with an error, and is paid for before the process ends',
  async t => {
    const { gateway, upstream } = await pair(t, { drain: '300ms' }, { chunks, hold: 4 })
    const streams = await Promise.all(Array.from({ length: 5 }, () => ask(gateway, true)))
    const messages = await gateway.post('/v1/messages', {
      model: 'test',
      max_tokens: 100,
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    await upstream.script('a', [{ hold: 0 }])
    const waiting = ask(gateway, false)
    await upstream.record('a', { requests: 7 })
    const exit = gateway.kill('SIGTERM')
    for (const response of streams) {
      const { data, terminator } = await readEvents(response)
      t.equal(textOf(data), chunks.slice(0, 4).join(''))
      t.match(data.at(-2), { error: { code: 'server_shutting_down' } })
      t.match(data.at(-1), { usage: { completion_tokens: 4 }, metadata: {} })
      t.equal(terminator, '[DONE]')
    }
    const told = await readEvents<{ type: string }>(messages)
    t.match(told.data.at(-1), { type: 'error', error: { type: 'api_error' } })
    t.equal(told.terminator, null)
    const refused = await waiting
    t.equal(refused.status, 503)
    t.match(await refused.json(), { error: { code: 'server_shutting_down' } })
    t.equal(await exit, 0)
    const entries = await upstream.record('a', { ended: 7 })
    t.ok(entries.every(({ outcome }) => outcome === 'aborted'))
    t.strictSame(rowsOf(gateway), [{ code: 'server_shutting_down', count: 7, paid: 6 }], 'paid: what was delivered')
    t.equal(heldOf(gateway), 0)
  },
)

t.test('SD-03 a second signal waits for no client, SIGINT is as SIGTERM, and SIGHUP reloads', async t => {
  const { gateway, upstream } = await pair(t, { drain: NEVER }, { chunks, hold: 4 })
  const loads = async () => metric(await gateway.metrics(), 'gateway_config_reloads_total')!
  const before = await loads()
  gateway.signal('SIGHUP')
  while ((await loads()) === before) await sleep(10)
  t.equal((await gateway.get('/')).status, 200)

  const stream = readEvents(await ask(gateway, true))
  await upstream.record('a', { requests: 1, chunks: 4 })
  gateway.signal('SIGINT')
  while ((await gateway.admin('GET', '/ready')).status !== 503) await pause()
  const at = performance.now()
  t.equal(await gateway.kill('SIGTERM'), 0)
  const value = performance.now() - at
  timing(t, { id: 'SD-03', what: 'the end after a second signal', value, unit: 'ms', atMost: 4000 })
  const { data, terminator } = await stream
  t.match(data.at(-2), { error: { code: 'server_shutting_down' } })
  t.equal(terminator, '[DONE]')
  t.strictSame(rowsOf(gateway), [{ code: 'server_shutting_down', count: 1, paid: 1 }])
  t.equal(heldOf(gateway), 0)
})

t.test(
  'SD-05, SD-07, SD-08 what was answered or left stands in the books after the end, and nothing stays open',
  async t => {
    const { gateway, upstream } = await pair(t, { drain: NEVER })
    await upstream.script('a', [...Array.from({ length: LEAVING }, () => ({ chunks, hold: 4 })), {}])
    const clients = Array.from({ length: LEAVING }, () => new AbortController())
    const body = { model: 'test', stream: true, messages: [{ role: 'user', content: 'Hi' }] }
    const left = await Promise.all(clients.map(({ signal }) => gateway.chat(body, {}, signal)))
    await upstream.record('a', { requests: LEAVING, chunks: 4 })
    const served = async (n: number): Promise<boolean> => {
      const response = await ask(gateway, n % 2 === 0)
      return !(await response.text()).includes('"error":') && response.status === 200
    }
    const answers = Array.from({ length: 300 }, (_, n) => served(n))
    await upstream.record('a', { requests: LEAVING + 50 })
    const exit = gateway.kill('SIGTERM')
    // Nobody waits any more for what becomes of these.
    for (const client of clients) client.abort()
    for (const response of left) await t.rejects(response.text())
    const whole = (await Promise.allSettled(answers)).filter(end => end.status === 'fulfilled' && end.value).length
    t.equal(await exit, 0)
    t.match(gateway.stdout(), 'nothing is left to do', 'it ends by itself')
    t.notOk(existsSync(join(gateway.dir, 'data/gateway.db-wal')), 'the log is folded into the database')
    const count = (outcome: string) =>
      readBooks(gateway, db =>
        db.prepare('SELECT count(*) FROM requests WHERE outcome = ?').pluck().get(outcome),
      ) as number
    t.ok(count('ok') >= whole && whole >= 50, `${whole} answers, ${count('ok')} rows`)
    const cancelled = (rowsOf(gateway) as { code: string | null }[]).filter(({ code }) => code === 'request_cancelled')
    t.strictSame(cancelled, [{ code: 'request_cancelled', count: LEAVING, paid: LEAVING }])
    t.equal(heldOf(gateway), 0)
    await gateway.restart()
    t.strictSame(await (await gateway.admin('POST', '/commands/usage.check')).json(), { differences: [] })
    t.equal(count('orphaned'), 0)
    t.equal((await ask(gateway, false)).status, 200, 'and it starts again')
    t.equal(await gateway.kill('SIGTERM'), 0)
  },
)

t.test('SD-06 a signal in the middle of the first start loses no key: it is shown, and then the end comes', async t => {
  // As soon as the process listens to signals; the test's runner does so before.
  const signal = `process.on('newListener', name => {
    if (name === 'SIGTERM' && /main\\.js/.test(new Error().stack)) setImmediate(process.kill, process.pid, name)
  })`
  const gateway = await startGateway(t, {
    providers: { a: { base_url: 'http://127.0.0.1:9/v1' } },
    env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(signal)}` },
  })
  t.match(gateway.key, /^mgw_/)
  t.equal(await gateway.exited, 0)
  t.match(gateway.stdout(), `Your API key, shown only this once:\n\n  ${gateway.key}\n`)
  t.strictSame(messagesOf(gateway).sort(), ['gateway started', 'gateway stopped', 'gateway stops'])
})

t.test('SD-06 a signal in the middle of a reload, or of the start, ends cleanly', async t => {
  const { gateway, upstream } = await pair(t, { drain: '3s' })
  for (let round = 0; round < 3; round++) {
    await gateway.writeProvider('a', { name: `A ${round}`, base_url: upstream.url('a') })
    void gateway.admin('POST', '/reload').catch(() => undefined)
    gateway.signal('SIGHUP')
    t.equal(await gateway.kill('SIGTERM'), 0)
    t.notMatch(gateway.stderr(), /Error|at /)
    await gateway.restart()
    t.equal((await ask(gateway, false)).status, 200)
  }
})
