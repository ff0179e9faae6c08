/** Edge cases of connections to providers that only sockets show: E9, E10, and packed streams (S21). */
import { createDeflate, gzipSync, constants as zlib } from 'node:zlib'
import t from 'tap'
import { timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const FIRST_MS = 400
const IDLE_MS = 2000
const TOTAL_MS = 3000
/** A name that no resolver is asked for: a label of it is too long. */
const nowhere = `${'x'.repeat(64)}.test`

const upstream = await startUpstream(t)
/** Longer than the tests may take: what ends all the same was ended by something else. */
const patient = { connect: '1h', first_event: '1h', idle: '1h', total: '1h' }
const offer = (model: string, baseUrl: string, priority: number, timeouts: object = patient) => ({
  base_url: baseUrl,
  priority,
  timeouts,
  models: [{ ...testMapping, model }],
})
const plain = upstream.url('plain')
const gateway = await startGateway(t, {
  providers: {
    dns: offer('dns', `https://${nowhere}/v1`, 2),
    'dns-b': offer('dns', upstream.url('spare'), 1),
    tls: offer('tls', plain.replace('http:', 'https:'), 2),
    'tls-b': offer('tls', upstream.url('spare'), 1),
    test: offer('test', plain, 1),
    late: offer('late', upstream.url('late'), 1, { ...patient, first_event: `${FIRST_MS}ms` }),
    idle: offer('idle', upstream.url('idle'), 1, { ...patient, idle: `${IDLE_MS}ms`, total: `${TOTAL_MS}ms` }),
  },
})
const ask = (model: string, stream: boolean) =>
  gateway.chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] })
const comment = { text: ': keep-alive\n\n', pauseMs: 50, times: 1e9 }
const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

for (const [model, says] of [
  ['dns', 'whose name does not resolve'],
  ['tls', 'that speaks no TLS'],
] as const) {
  t.test(`E9 a provider ${says} is not reached, and another one answers`, async t => {
    await upstream.script('spare', [{ text: 'Here' }])
    const response = await ask(model, false)
    t.equal(response.status, 200)
    t.match(await response.json(), {
      choices: [{ message: { content: 'Here' } }],
      metadata: {
        routing: [
          { provider: model, status_code: 0, error_type: 'network_error', succeeded: false },
          { provider: `${model}-b`, succeeded: true },
        ],
      },
    })
  })
}

t.test('E10 comments are no first event', async t => {
  await upstream.script('late', [{ raw: [comment] }])
  const start = performance.now()
  const response = await ask('late', true)
  const ms = performance.now() - start
  t.equal(response.status, 504)
  t.match(await response.json(), { error: { code: 'timeout' } })
  t.ok(ms >= FIRST_MS * 0.9, `after ${Math.round(ms)} ms`)
})

t.test('E10 comments keep an idle stream alive, but not for longer than the total time', async t => {
  await upstream.script('idle', [{ raw: [event({ role: 'assistant', content: 'Wait' }), comment] }])
  const start = performance.now()
  const { data } = await readEvents(await ask('idle', true))
  const ms = performance.now() - start
  t.equal(textOf(data), 'Wait')
  t.match(data.find(({ error }) => error)?.error, { code: 'timeout' })
  t.ok(ms > TOTAL_MS * 0.9, `after ${Math.round(ms)} ms`)
  timing(t, { id: 'E10', what: 'a stream of comments ends after', value: ms, unit: 'ms', atMost: TOTAL_MS * 2 })
})

t.test('S21 SF-18 a packed stream reaches its client event by event', async t => {
  const stream = createDeflate({ flush: zlib.Z_SYNC_FLUSH })
  const pieces: Buffer[] = []
  stream.on('data', (chunk: Buffer) => pieces.push(chunk))
  const raw = []
  for (const text of [event({ role: 'assistant', content: 'Hé' }), event({ content: '🙂' }), event({}, 'stop')]) {
    await new Promise(resolve => stream.write(text, resolve))
    raw.push({ base64: Buffer.concat(pieces.splice(0)).toString('base64') })
  }
  await upstream.script('plain', [{ raw, hold: 1, headers: { 'content-encoding': 'deflate' } }])
  const response = await ask('test', true)
  const reader = response.body!.getReader()
  const first = new TextDecoder().decode((await reader.read()).value)
  t.match(first, '"content":"Hé"', 'the first event is there while the others are held')
  await upstream.release('plain')
  let last = ''
  for (let step = await reader.read(); !step.done; step = await reader.read())
    last += new TextDecoder().decode(step.value)
  t.match(last, /"content":"🙂"[\s\S]*"finish_reason":"stop"[\s\S]*data: \[DONE\]\n\n$/)
})

t.test('S21 a compressed error is read, and the caller gets its message', async t => {
  const error = { message: 'This prompt is too long.', type: 'invalid_request_error', code: 'context_length_exceeded' }
  const base64 = gzipSync(JSON.stringify({ error })).toString('base64')
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  await upstream.script('plain', [{ status: 400, raw: [{ base64 }], headers }])
  const response = await ask('test', true)
  t.equal(response.status, 400)
  t.match(await response.json(), { error: { message: /This prompt is too long/ } })
})

t.test('an error counts by its status when its body is cut short or cannot be decompressed', async t => {
  const refusal = (header: string) => `HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n${header}\r\n\r\n{"error"`
  for (const header of ['Content-Length: 1000', 'Content-Encoding: zstd', 'Content-Encoding: gzip']) {
    await upstream.script('plain', [{ socket: [refusal(header)] }])
    const response = await ask('test', false)
    t.equal(response.status, 503, header)
    t.match(await response.json(), { error: { code: 'upstream_rate_limited' } }, header)
  }
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
