/**
 * The wire `openai.responses`. Its tables are `test/golden/openai-responses`: requests with the body that they become,
 * recorded streams with their events, and one `*.table.json` per kind of edge case. Ids: docs/contributing/edge-cases.md.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/openai-responses.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import { JsonFraming } from '../../src/upstream/framing/json.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { Fold } from '../../src/wire/fold.ts'
import { checkParameters, checkRefusals } from './golden-checks.ts'
import {
  type AnswerRow,
  call,
  cuts,
  errorsOf,
  hi,
  type Json,
  show as lineOf,
  offer,
  result,
  subject,
  textOf,
  usageOf,
} from './golden-kit.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261201 })

const wired = subject(plugin.wires[0]!, 'openai-responses')
const { wire, read, names, table, encode, decode } = wired
const recordings = names('.sse').map(name => ({ name, sse: read(`${name}.sse`) }))
const itemsOf = (messages: Json[], to?: Target) => encode({ messages }, to).body.input as Json[]
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
/** As the terminal reads: chunks through the framing, up to the wire's own end. */
function received(chunks: readonly Buffer[], mode: 'stream' | 'unary' = 'stream'): Event[] {
  const framing = mode === 'stream' ? new SseFraming() : new JsonFraming()
  const decoder = wire.decoder(mode, target())
  const events: Event[] = []
  for (const frames of [...chunks.map(chunk => () => framing.push(chunk)), () => framing.end()]) {
    for (const frame of decoder.done ? [] : frames()) events.push(...decoder.frame(frame))
  }
  return [...events, ...decoder.end()]
}

/** One event as a line; `start` is left out, for it says the same in every row, and so is the only choice. */
function show(event: Event): string[] {
  switch (event.type) {
    case 'start':
      return []
    case 'text':
    case 'refusal':
      return [`${event.type} ${event.text}`]
    case 'reasoning':
      return [`reasoning #${event.block} ${event.text}${event.data === undefined ? '' : ` data=${event.data}`}`]
    case 'tool': {
      const facts = Object.entries({ id: event.id, name: event.name, args: event.args, custom: event.custom })
      return [
        `tool ${event.index}${facts.map(([key, value]) => (value === undefined ? '' : ` ${key}=${value}`)).join('')}`,
      ]
    }
    case 'phase':
      return [`phase ${event.phase}`]
    case 'image':
      return [`image ${event.url}`]
    case 'native':
      return [`native ${event.provider} ${JSON.stringify(event.block)}`]
    case 'finish':
      return [`finish ${event.reason}`]
    default:
      return [lineOf(event)]
  }
}

t.test('a limit that the wire raises is said of the request', async t => {
  for (const [asked, limit] of [
    [1, 16],
    [16, undefined],
    [undefined, undefined],
  ]) {
    const { output, body } = encode(asked === undefined ? {} : { max_tokens: asked })
    t.strictSame([output?.limit, body.max_output_tokens], [limit, limit ?? asked])
  }
})

t.test('golden requests are encoded without touching them', async t => {
  for (const name of names('.request.json')) {
    const { mapping, request } = deepFreeze(JSON.parse(read(`${name}.request.json`)))
    const sent = wire.encode(request, offer(mapping), request.stream === true)
    t.strictSame(
      { ...sent, body: plain(sent.body) },
      { path: '/responses', body: JSON.parse(read(`${name}.body.json`)) },
      name,
    )
  }
})

t.test('parameters are mapped, clamped or dropped', async t => {
  await checkParameters(t, wired)
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, wired)
})

t.test('the same request always becomes the same bytes, and a longer conversation begins with them', async t => {
  const { request } = JSON.parse(read('history.request.json'))
  const all = new Set<string>()
  for (let i = 0; i < 100; i++) all.add(JSON.stringify(wire.encode(structuredClone(request), target(), true).body))
  t.equal(all.size, 1)
  const messages: Json[] = [...request.messages, hi]
  const whole = itemsOf(messages).map(item => JSON.stringify(item))
  // After these, every call has its result.
  for (const length of [1, 3, 6, 11, 14, 15]) {
    const items = itemsOf(messages.slice(0, length)).map(item => JSON.stringify(item))
    t.strictSame(items, whole.slice(0, items.length), `${length} messages`)
  }
})

t.test('R3, R4 every call has one result, by an id that the wire takes', async t => {
  const asked = (id: string): Json => ({ role: 'assistant', tool_calls: [call(id)] })
  const pairs = (messages: Json[]) => itemsOf(messages).map(({ type, call_id, output }) => [type, call_id, output])
  const ids = (messages: Json[]) => [...new Set(pairs(messages).map(([, id]) => String(id)))]

  t.strictSame(
    pairs([asked('call_abc|fc_1'), result('call_abc|fc_1', 'a')]).map(([, id]) => id),
    ['call_abc|fc_1', 'call_abc|fc_1'],
  )
  for (const id of ['', 'x'.repeat(65)]) {
    t.match(ids([asked(id), result(id, 'a')]), [/^call_[0-9a-f]{32}$/], 'the same for call and result')
    t.strictSame(ids([asked(id), result(id, 'a')]), ids([asked(id), result(id, 'a')]), 'the same each time')
  }
  const again = pairs([asked('a'), result('a', '1'), asked('a'), result('a', '2')])
  t.strictSame(
    again.map(([, , output]) => output),
    [undefined, '1', undefined, '2'],
  )
  t.equal(new Set(again.map(([, id]) => id)).size, 2, 'an id that comes again is another call')
  t.strictSame(
    pairs([asked('a'), result('a', '1'), hi, result('a', '2')]),
    [
      ['function_call', 'a', undefined],
      ['function_call_output', 'a', '2'],
      ['message', undefined, undefined],
    ],
    'the last of two results counts',
  )
  const alike = { role: 'assistant', tool_calls: [call('a'), call('a')] }
  t.strictSame(
    pairs([asked('a'), alike, result('a', '1'), result('a', '2'), result('a', '3')])
      .slice(-2)
      .map(([, , output]) => output),
    ['1', '3'],
    'calls of one turn that share an id have a result each',
  )
  t.strictSame(
    pairs([asked('a'), asked('b'), result('b', '1')]),
    [
      ['function_call', 'a', undefined],
      ['function_call_output', 'a', 'No result'],
      ['function_call', 'b', undefined],
      ['function_call_output', 'b', '1'],
    ],
    'a call without a result gets one',
  )
})

t.test('R5, R15 the turn of a user who says nothing stays the last one', async t => {
  const said = (role: string, content: unknown) => ({ role, content })
  const roles = (...messages: Json[]) => itemsOf([hi, ...messages]).map(({ role }) => role)
  t.strictSame(roles(said('assistant', 'So'), said('user', '')), ['user', 'assistant', 'user'])
  t.strictSame(roles(said('assistant', 'So')), ['user', 'assistant'])
  t.strictSame(roles(said('user', [])), ['user'])
})

t.test('R20 half a character is no reason to refuse a conversation', async t => {
  const items = itemsOf([
    { role: 'user', content: 'a\ud83d' },
    { role: 'assistant', content: '\ude00b' },
    { role: 'user', content: '🙂' },
  ])
  t.match(items, [{ content: 'a\ufffd' }, { content: [{ text: '\ufffdb' }] }, { content: '🙂' }])
})

t.test('recorded streams give the expected events', async t => {
  for (const { name, sse } of recordings) {
    t.strictSame(plain(received([Buffer.from(sse)])), JSON.parse(read(`${name}.events.json`)), name)
  }
})

t.test('any way of cutting the bytes of a stream gives the same events', async t => {
  for (const { name, sse } of recordings) {
    const bytes = Buffer.from(sse)
    const expected = received([bytes])
    t.strictSame(received([...bytes].map(byte => Buffer.of(byte))), expected, `${name}: S15 byte by byte`)
    const holds = fc.property(cuts(bytes), pieces => {
      assert.deepEqual(received(pieces), expected)
    })
    t.doesNotThrow(() => fc.assert(holds, { numRuns: 30 }), name)
    const frames = sse.split('\n\n').filter(Boolean)
    for (let count = 0; count < frames.length; count++) {
      const cut = received([Buffer.from(`${frames.slice(0, count).join('\n\n')}\n\n`)])
      t.match(errorsOf(cut), [{ code: 'upstream_stream_truncated', failover: true }], `${name} after ${count} frames`)
      t.notOk(cut.some(event => event.type === 'finish'))
    }
  }
})

t.test('a whole answer says and costs what its stream said', async t => {
  for (const { name, sse } of recordings) {
    const streamed = received([Buffer.from(sse)])
    const last = /^data: (.*)\n\n$/m.exec(sse.slice(sse.lastIndexOf('event: ')).replace(/^event: .*\n/, ''))![1]!
    const whole = received([Buffer.from(JSON.stringify(JSON.parse(last).response))], 'unary')
    const folded = (events: readonly Event[]) => {
      const fold = new Fold()
      fold.add(events)
      return fold.choices
    }
    t.strictSame(folded(whole), folded(streamed), name)
    t.strictSame(usageOf(whole), usageOf(streamed), name)
    t.strictSame(
      whole.filter(({ type }) => type === 'tier' || type === 'start'),
      streamed.filter(({ type }) => type === 'tier' || type === 'start'),
    )
  }
})

t.test('answers of all kinds of servers give the same events', async t => {
  for (const { name, mode = 'stream', frames, shows } of table<AnswerRow>('answers')) {
    t.strictSame(decode(mode, frames).flatMap(show), shows, name)
  }
})

t.test('an answer begins once, with what is known of it', async t => {
  const begin = (response: Json) => ({ type: 'response.created', response })
  const starts = (...frames: unknown[]) => decode('stream', frames).filter(({ type }) => type === 'start')
  t.strictSame(starts(begin({ id: 'r1', model: 'm' }), { ...begin({ id: 'r2' }), type: 'response.in_progress' }), [
    { type: 'start', id: 'r1', model: 'm' },
  ])
  t.strictSame(starts(begin({ id: '', model: null })), [{ type: 'start' }], 'C34')
  t.strictSame(starts({ type: 'response.completed', response: { id: 'r' } }), [{ type: 'start', id: 'r' }])
})

t.test('S7 the type of an event wins over its name, which serves when there is no type', async t => {
  const events = decodeAll(wire.decoder('stream', target()), [
    { name: 'response.completed', data: '{"type":"response.output_text.delta","output_index":0,"delta":"a"}' },
    { name: 'ping', data: '{}' },
    { name: 'response.completed', data: '{"response":{}}' },
  ])
  t.strictSame(events.flatMap(show), ['text a', 'finish stop'])
})

t.test('ids that the gateway makes differ from call to call', async t => {
  const item = { type: 'function_call', name: 'f', arguments: '{}' }
  const ids = decode('unary', [{ output: [item, item] }]).flatMap(event =>
    event.type === 'tool' && event.id ? [event.id] : [],
  )
  t.match(ids, [/^call_[0-9a-f]{32}$/, /^call_[0-9a-f]{32}$/])
  t.not(ids[0], ids[1])
})

t.test('a failure becomes one error event, wherever it comes', async t => {
  const to = target({ secret: 'hunter2-hunter2' })
  const said = { type: 'response.output_text.delta', output_index: 0, delta: 'a' }
  for (const { name, frames, error } of table<{ frames: unknown[]; error: Json }>('failures')) {
    const first = decode('stream', frames, to)
    t.match(errorsOf(first), [error], `${name}, first (E2)`)
    t.strictSame(first.filter(({ type }) => type !== 'start').length, 1, `${name}: reported once, and nothing else`)
    const late = decode('stream', [said, ...frames, said], to)
    t.match(errorsOf(late), [error], `${name}, after output (E3)`)
    t.strictSame(late.flatMap(show).slice(0, 1), ['text a'])
    const body = frames.map(textOf).find(frame => !frame.includes('"type":"response.'))
    if (body && !body.includes('"type":"error"'))
      t.match(errorsOf(decode('unary', [body], to)), [error], `${name}, whole`)
  }
  const named = decodeAll(wire.decoder('stream', target()), [{ name: 'error', data: 'overloaded' }])
  t.match(errorsOf(named), [{ code: 'upstream_overloaded', message: 'overloaded' }], 'an error that is no JSON')
  const bare = decodeAll(wire.decoder('stream', target()), [{ name: 'error', data: '{"message":"overloaded"}' }])
  t.match(errorsOf(bare), [{ code: 'upstream_overloaded' }], 'an error by its name alone')
})

t.test('refusals with a status say whose fault they are', async t => {
  const to = target({ secret: 'hunter2-hunter2' })
  const body = (code: string | null, message: string, more: Json = {}) =>
    JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code, ...more } })
  const rows: [number, string, Json][] = [
    [
      400,
      body('unknown_parameter', 'no', { param: 'x' }),
      { status: 400, param: 'x', code: 'unknown_parameter', failover: false },
    ],
    [400, body('context_length_exceeded', 'long'), { status: 400, code: 'context_length_exceeded', failover: false }],
    [
      400,
      body('invalid_encrypted_content', 'could not be verified'),
      { status: 400, code: 'invalid_encrypted_content', failover: true },
    ],
    [
      401,
      body('invalid_api_key', 'bad key hunter2-hunter2'),
      { status: 502, code: 'upstream_credential', detail: 'bad key ***' },
    ],
    [404, body('model_not_found', 'no'), { status: 404, failover: true }],
    [429, body('rate_limit_exceeded', 'slow'), { status: 503, code: 'upstream_rate_limited', failover: true }],
    [429, body('insufficient_quota', 'none', { type: 'insufficient_quota' }), { status: 503, code: 'upstream_quota' }],
    [500, '<html>oops</html>', { status: 502, detail: 'the provider answered with status 500', failover: true }],
  ]
  for (const [status, text, expected] of rows) t.match(wire.error(status, text, to), expected, text)
})
