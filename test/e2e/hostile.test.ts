/** Bodies made to hurt are refused at once and hold nobody up; a client's schemas are carried, and never run. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { chat } from '../helpers/chat.ts'
import { TIMINGS, timing } from '../helpers/figure.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { raw } from '../helpers/raw.ts'
import { plainGateway } from './plain.ts'

const MAX_ANSWER_MS = 100
const MAX_LAG_MS = 50
const MB = 1_000_000

const { upstream, gateway } = await plainGateway()

const head = (framing: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${gateway.key}\r\n` +
  `Content-Type: application/json\r\n${framing}\r\n\r\n`
const opening = '{"model":"test","messages":[{"role":"user","content":"Hi"}]'
/** A request of so many bytes, with `unit` again and again between `start` and `end`. */
const filled = (bytes: number, start: string, unit: string, end: string) =>
  Buffer.from(start + unit.repeat(Math.ceil((bytes - start.length - end.length) / unit.length)) + end)
const nested = (start: string, open: string, close: string, depth: number, end: string) =>
  Buffer.from(start + open.repeat(depth) + close.repeat(depth) + end)
const tool = `${opening},"tools":[{"type":"function","function":{"name":"f","parameters":`

const bodies: readonly { says: string; body: Buffer; status: number; chunked?: boolean }[] = [
  { says: '40 MB, announced', body: filled(40 * MB, `${opening},"x":"`, 'x', '"}'), status: 413 },
  { says: '40 MB in a chunk', body: filled(40 * MB, `${opening},"x":"`, 'x', '"}'), status: 413, chunked: true },
  { says: '30 MB of numbers', body: filled(30 * MB, `${opening},"x":[0`, ',1', ']}'), status: 400 },
  { says: '30 MB of keys', body: filled(30 * MB, `${opening},"x":{"a":0`, ',"b":1', '}}'), status: 400 },
  { says: '30 MB of messages', body: filled(30 * MB, '{"model":"test","messages":[{}', ',{}', ']}'), status: 400 },
  { says: '30 MB of brackets', body: filled(30 * MB, `${opening},"x":`, '[', ''), status: 400 },
  { says: '30 MB that are no UTF-8', body: Buffer.alloc(30 * MB, 0xff), status: 400 },
  { says: 'depth 100,000 in a message', body: nested('{"messages":', '[', ']', 100_000, '}'), status: 400 },
  { says: 'depth 100,000 in a schema', body: nested(tool, '{"items":', '}', 100_000, '}}]}'), status: 400 },
  { says: 'depth 100,000 in what is ignored', body: nested(`${opening},"x":`, '[', ']', 100_000, '}'), status: 400 },
]

/** From the last byte of the request, or from connecting if the answer did not wait for it, to the answer's end. */
async function timed(body: Buffer, chunked: boolean): Promise<{ status: number; ms: number }> {
  const start = performance.now()
  let sent = Number.POSITIVE_INFINITY
  const write = (socket: Socket) => {
    socket.write(head(chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`))
    if (chunked) socket.write(`${body.length.toString(16)}\r\n`)
    socket.write(body, error => {
      if (!error) sent = performance.now() - start
    })
    if (chunked) socket.write('\r\n0\r\n\r\n')
  }
  const { status, ms } = await raw(gateway.port, write, { timeoutMs: 60_000, responses: 1 })
  return { status, ms: sent < ms ? ms - sent : ms }
}

/** How late the gateway's event loop was at most since the last call, in milliseconds. */
const lagMs = async () => 1000 * metric(await gateway.metrics(), 'gateway_event_loop_lag_seconds', { quantile: '1' })!

for (const { says, body, status, chunked = false } of bodies) {
  t.test(`MF-04 ${says}: ${status}, and others are served meanwhile`, async t => {
    let [least, lag] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let tries = 0; tries < TIMINGS; tries++) {
      await lagMs()
      const [answer, other] = await Promise.all([timed(body, chunked), gateway.chat('Hello')])
      await other.arrayBuffer()
      lag = Math.min(lag, await lagMs())
      least = Math.min(least, answer.ms)
      t.equal(answer.status, status)
      t.equal(other.status, 200, 'somebody else is served meanwhile')
    }
    const told = { id: 'MF-04', unit: 'ms' }
    timing(t, { ...told, what: `refusal of ${says}`, value: least, atMost: MAX_ANSWER_MS })
    timing(t, { ...told, what: `others wait for ${says}`, value: lag, atMost: MAX_LAG_MS })
  })
}

/** Nobody shall come: what a schema refers to is not fetched. */
let visits = 0
const canary = createServer(socket => {
  visits++
  socket.destroy()
}).listen(0, '127.0.0.1')
await once(canary, 'listening')
t.teardown(() => canary.close())
const elsewhere = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/schema.json`

/** Schemas that take a validator for ever, or that no validator compiles. */
const schemas: Record<string, object> = {
  'a pattern that backtracks': { type: 'string', pattern: '^(a+)+$' },
  'a schema that holds itself': { $ref: '#', $defs: { a: { $ref: '#/$defs/a' } } },
  'alternatives that multiply': Array.from({ length: 20 }).reduce<object>(
    inner => ({ anyOf: [inner, { items: { $ref: '#' } }], uniqueItems: true }),
    { type: 'string', pattern: '(.*a){20}$' },
  ),
  'words that mean nothing': { type: 'nonsense', $schema: elsewhere, $ref: elsewhere, format: '(', minLength: -1 },
}

for (const [says, value] of Object.entries(schemas)) {
  t.test(`MF-15 ${says} is the provider's to read: it arrives as it was, and is never run`, async t => {
    await upstream.reset()
    const answer = JSON.stringify({ value: `${'a'.repeat(50_000)}!` })
    await upstream.script('a', [{ text: answer }])
    const schema = { type: 'object', properties: { value }, required: ['value'] }
    const body = {
      model: 'test',
      messages: [{ role: 'user', content: 'Hi' }],
      response_format: { type: 'json_schema', json_schema: { name: 'it', schema, strict: true } },
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    }
    for (const more of [{}, { plugins: [{ id: 'response-healing' }] }]) {
      let value = Number.POSITIVE_INFINITY
      for (let tries = 0; tries < TIMINGS; tries++) {
        await lagMs()
        const { status, message } = await chat(gateway, 'whole', { ...body, ...more })
        value = Math.min(value, await lagMs())
        t.equal(status, 200)
        t.equal(message.content, answer)
      }
      timing(t, { id: 'MF-15', what: `others wait for ${says}`, value, unit: 'ms', atMost: MAX_LAG_MS })
      const sent = (await upstream.record('a')).at(-1)!.body as typeof body
      t.strictSame(sent.response_format.json_schema.schema, schema)
      t.strictSame(sent.tools[0]!.function.parameters, schema)
    }
  })
}

t.test('MF-15 a schema of 19,000 properties is carried too', async t => {
  await upstream.reset()
  const properties = Object.fromEntries(Array.from({ length: 19_000 }, (_, n) => [`p${n}`, {}]))
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties } } }]
  const messages = [{ role: 'user', content: 'Hi' }]
  t.equal((await chat(gateway, 'whole', { model: 'test', messages, tools })).status, 200)
  const [entry] = await upstream.record('a')
  t.strictSame((entry!.body as { tools: object }).tools, tools)
})

t.test('MF-15 a schema of 200 levels is refused by its depth, and no reference of any was followed', async t => {
  let schema: object = { type: 'string' }
  for (let level = 0; level < 200; level++) schema = { items: schema }
  const response_format = { type: 'json_schema', json_schema: { name: 'it', schema } }
  const messages = [{ role: 'user', content: 'Hi' }]
  const { status, error } = await chat(gateway, 'whole', { model: 'test', messages, response_format })
  t.match([status, error?.code], [400, 'too_deep'])
  t.equal(visits, 0)
})

t.test('MF-15 half a million levels in the arguments of a call are refused by their depth', async t => {
  const args = '{"a":'.repeat(500_000) + '}'.repeat(500_000)
  const tool_calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }]
  const messages = [
    { role: 'assistant', content: null, tool_calls },
    { role: 'user', content: 'Hi' },
  ]
  const { status, error } = await chat(gateway, 'whole', { model: 'test', messages })
  t.match([status, error?.code], [400, 'too_deep'])
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))

t.test('an answer that would take long to heal blocks no other request, and passes unchanged', async t => {
  await upstream.reset()
  const answer = `{${'"'.repeat(160_000)}`
  await upstream.script('a', [{ text: answer }])
  const healing = { response_format: { type: 'json_object' }, plugins: [{ id: 'response-healing' }] }
  const messages = [{ role: 'user', content: 'Hi' }]
  const whole = chat(gateway, 'whole', { model: 'test', messages, ...healing })
  let [ended, most, served] = [false, 0, 0]
  const done = whole.finally(() => {
    ended = true
  })
  // It is about to be healed, or is already.
  await upstream.record('a', { ended: 1 })
  for (; !ended; served++) {
    const began = performance.now()
    await (await gateway.get('/')).text()
    most = Math.max(most, performance.now() - began)
  }
  const { message, metadata } = await done
  t.match([message.content, metadata], [answer, { healing_skipped: 'timeout' }], 'and says so')
  t.ok(served > 0, `${served} other requests are answered first; a loop that heals could not give up in time either`)
  // Healing it takes longer than ten seconds.
  timing(t, { id: 'OB', what: 'the longest that another request took', value: most, unit: 'ms', atMost: 1000 })
})
