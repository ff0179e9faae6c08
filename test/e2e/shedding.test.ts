/** A process that is short of time or of memory turns work away, says for how long, and takes it again. */
import { rename, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { startGateway } from '../helpers/gateway.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const MIB = 1024 * 1024
const DEADLINE_MS = 30_000
const RPM = 3
const chunks = ['One ', 'two ', 'six ', 'ten ']

const folder = t.testdir({})
const heap = join(folder, 'heap')
const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  config: {
    endpoints: {
      messages: { ratelimit: { rpm: RPM } },
      chat: { ratelimit: { rpm: 100_000 }, admission: { lag: '200ms' } },
    },
  },
  env: { NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/strain.cjs')}`, HEAP: heap },
})

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway) })

const ask = (stream = false) =>
  gateway.chat({ model: 'test', stream, messages: [{ role: 'user', content: 'Hi' }] }, { connection: 'close' })
/** The answer, read to its end. */
async function told(asked: Promise<Response>) {
  const response = await asked
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: () => JSON.parse(text) as unknown }
}
const statusOf = async (asked: Promise<Response>) => (await told(asked)).status

/** Whether something comes true in time. */
async function comes(holds: () => Promise<boolean>): Promise<boolean> {
  for (const start = performance.now(); performance.now() - start < DEADLINE_MS; await sleep(20)) {
    if (await holds()) return true
  }
  return false
}

async function checkShed(t: Test, asked: Promise<Response>): Promise<void> {
  const { status, headers, body } = await told(asked)
  t.equal(status, 529)
  t.match(headers.get('retry-after'), /^[1-3]$/, 'it says when to come back')
  t.match(body(), { error: { type: 'overloaded', code: 'overloaded' } })
  t.ok(isErrorBody(body()))
}

group('OB-10, OB-13 a loop that lags takes no new work until it has caught up; what runs goes on', async t => {
  await upstream.script('a', [{ chunks, hold: 2 }])
  const running = await ask(true)
  await upstream.record('a', { requests: 1, chunks: 2 })
  await upstream.script('a', [{}])
  gateway.signal('SIGUSR2')
  t.ok(await comes(async () => (await statusOf(ask())) === 529), 'it sheds')
  t.equal(await statusOf(gateway.get('/')), 200, 'health is not shed')
  t.match(await gateway.metrics(), 'gateway_requests_total', 'nor are the metrics')
  await upstream.release('a')
  const { data, terminator } = await readEvents(running)
  t.strictSame([textOf(data), terminator], [chunks.join(''), '[DONE]'])
  t.ok(await comes(async () => (await statusOf(ask())) === 200), 'and serves again')
})

/** The heap is so full from now on. */
async function fill(share: number): Promise<void> {
  await writeFile(`${heap}.new`, String(share))
  await rename(`${heap}.new`, heap)
}
const large = { model: 'test', messages: [{ role: 'user', content: 'x'.repeat(1.5 * MIB) }] }
const askLarge = () => gateway.chat(large, { connection: 'close' })

/** Whether of two connections that say nothing both stay open. */
async function takesConnections(): Promise<boolean> {
  const sockets = [0, 1].map(() => connect(gateway.port, '127.0.0.1').on('error', () => undefined))
  const closed = sockets.map(socket => new Promise<boolean>(resolve => socket.once('close', () => resolve(true))))
  const any = await Promise.race([...closed, sleep(200, false)])
  for (const socket of sockets) socket.destroy()
  return !any
}

group('OB-11, OB-13 memory that runs short ends large bodies, then connections, then all new work', async t => {
  t.equal(await statusOf(askLarge()), 200)
  await fill(0.86)
  t.ok(await comes(async () => (await statusOf(askLarge())) === 529), 'large bodies are refused')
  t.equal(await statusOf(ask()), 200, 'small ones are not')
  await fill(0.82)
  await sleep(600)
  await checkShed(t, askLarge())
  const closes = async () => (await told(gateway.get('/'))).headers.get('connection') === 'close'
  t.notOk(await closes())
  await fill(0.93)
  t.ok(await comes(closes), 'connections end with their answers')
  t.equal(await statusOf(ask()), 200)
  await fill(0.96)
  t.ok(await comes(async () => (await statusOf(ask())) === 529), 'nobody enters')
  await checkShed(t, ask())
  t.equal(await statusOf(gateway.get('/')), 200)
  t.match(await gateway.metrics(), 'gateway_requests_total')
  t.ok(await takesConnections())
  await fill(0.99)
  t.ok(await comes(async () => !(await takesConnections())), 'nobody connects')
  t.equal((await gateway.admin('GET', '/ready')).status, 200, 'but the operator')
  await fill(0.5)
  t.ok(await comes(takesConnections))
  t.ok(await comes(async () => (await statusOf(askLarge())) === 200), 'all of it comes back')
  t.notOk(await closes())
})

group('OB-13, OB-14 who asks too often is told how often it may, how much is left, and when to come back', async t => {
  const message = () => {
    const body = { model: 'test', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }
    return told(gateway.post('/v1/messages', body))
  }
  for (let left = RPM - 1; left >= -2; left--) {
    const { status, headers } = await message()
    t.equal(status, left >= 0 ? 200 : 429)
    t.equal(headers.get('ratelimit-policy'), `"requests";q=${RPM};w=60`)
    const [, rest, seconds] = /^"requests";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
    t.equal(Number(rest), Math.max(0, left), 'never less than nothing')
    t.ok(Number(seconds) <= 60)
    if (left < 0) t.match(headers.get('retry-after'), /^[1-9]\d*$/)
    else t.notOk(headers.has('retry-after'))
  }
  const { headers } = await told(gateway.get('/v1/models', { authorization: null }))
  t.notOk(headers.has('ratelimit') || headers.has('ratelimit-policy'), 'where nothing is counted, nothing is told')
})
