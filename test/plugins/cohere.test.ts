/**
 * The wire `cohere.chat`. Its tables are `test/golden/cohere`: requests with the body that they become, answers as
 * frames with what they show, one event a line. Ids: docs/contributing/edge-cases.md.
 */
import t from 'tap'
import { plugin } from '../../plugins/cohere.ts'
import { Registry } from '../../src/app/registry.ts'
import { startUpstream } from '../helpers/upstream.ts'
import {
  anyMessages,
  checkCuts,
  checkErrors,
  checkFailures,
  checkHistories,
  checkParameters,
  checkPrefix,
  checkRefusals,
  failures,
} from './golden-checks.ts'
import {
  type AnswerRow,
  ask,
  call,
  errorsOf,
  hi,
  type Json,
  type Mode,
  offer,
  type RequestRow,
  result,
  rulesOf,
  show,
  subject,
  turnOf,
  usageOf,
} from './golden-kit.ts'
import { target } from './wire-kit.ts'

const wired = subject(plugin.wires[0]!, 'cohere')
const { wire, read, table, decode } = wired
const thinks = offer({ supports: ['reasoning'] })
const encode = (request: Json, to = target()) => wired.encode(request, to).body
const turnsOf = (messages: Json[], to = target(), rest: Json = {}) =>
  encode({ ...rest, messages: [...messages] }, to).messages as Json[]

const accepts = await rulesOf('cohere')

t.test('the registry has the wire', async t => {
  t.equal(new Registry().wires.get('cohere.chat'), wire)
})

t.test('golden requests are encoded without touching them', async t => {
  for (const { name, mapping, request, body } of table<RequestRow>('requests')) {
    const sent = wired.encode(request, offer(mapping), request.stream === true)
    t.equal(sent.path, '/chat')
    t.strictSame(JSON.parse(JSON.stringify(sent.body)), body, name)
    accepts(sent.body)
  }
})

t.test('parameters are mapped, clamped or dropped', async t => {
  await checkParameters(t, wired, ({ body }) => accepts(body))
})

t.test('histories become turns in the order of the wire', async t => {
  for (const { name, messages, turns } of table<{ messages: Json[]; turns: Json[] }>('histories')) {
    const sent = encode({ messages })
    t.strictSame(JSON.parse(JSON.stringify(sent.messages)), turns, name)
    accepts(sent)
  }
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, wired)
})

t.test('answers in all forms give the same events', async t => {
  for (const { name, mode = 'stream', frames, shows } of table<AnswerRow>('answers')) {
    t.strictSame(decode(mode, frames).map(show), shows, name)
  }
})

t.test('any way of cutting a stream into bytes gives the same events', async t => {
  const whole = checkCuts(t, wire, Buffer.from(read('stream.sse')))
  t.strictSame(whole.map(show), [
    'start 2941521a-b87a -',
    'reasoning 0#0 Hé 🙂',
    'reasoning 0#0 sealed acme:{"type":"thinking"}',
    'text 0 I will look',
    'text 0  for 日本.',
    'tool 0.0 id=weather_e8p4 name=weather',
    'tool 0.0 args={"city":',
    'tool 0.0 args= "Zürich"}',
    'tool 0.1 id=time_y46a name=time',
    'usage prompt=1549 completion=95 input_cache_read=1504',
    'tool 0.1 args={}',
    'finish 0 tool_calls',
  ])
})

t.test('an answer is done at its end, at an error, and at the end of a whole body', async t => {
  const done = (mode: Mode, data: string) => {
    const decoder = wire.decoder(mode, target())
    t.equal(decoder.done, false)
    decoder.frame({ data })
    if (decoder.done) t.strictSame([...decoder.frame({ data: '{"message":"late"}' }), ...decoder.end()], [])
    return decoder.done
  }
  t.equal(done('stream', '{"type":"message-start","id":"c1"}'), false)
  t.equal(done('stream', '[DONE]'), false, 'it is not the end of the wire')
  t.equal(done('stream', '{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}'), true)
  t.equal(done('stream', '{"message":"no"}'), true)
  t.equal(done('unary', '{"message":{"content":"a"}}'), true)
})

t.test('C15 ids that the gateway makes differ from answer to answer', async t => {
  const frame = { message: { tool_calls: [{ function: { name: 'f' } }, { function: { name: 'g' } }] } }
  const ids = () => decode('unary', [frame]).flatMap(event => (event.type === 'tool' && event.id ? [event.id] : []))
  const all = [...ids(), ...ids()]
  t.equal(new Set(all).size, 4)
  for (const id of all) t.match(id, /^call_[A-Za-z0-9]{24}_0_[01]$/)
})

t.test('usage counts real tokens, streamed and whole alike', async t => {
  const billed_units = { input_tokens: 19, output_tokens: 12 }
  const tokens = { input_tokens: 1549, output_tokens: 103 }
  const rows: [Json | null, Json][] = [
    [
      { billed_units, tokens, cached_tokens: 992 },
      { prompt: 1549, completion: 103, input_cache_read: 992 },
    ],
    [
      { billed_units, tokens },
      { prompt: 1549, completion: 103 },
    ],
    [{ billed_units }, { prompt: 19, completion: 12 }],
    [
      { tokens, cached_tokens: 2000 },
      { prompt: 3549, completion: 103, input_cache_read: 2000 },
    ],
    [{ tokens: { input_tokens: 0, output_tokens: 0 } }, {}],
    [{ tokens: { input_tokens: null, output_tokens: 5 } }, { completion: 5 }],
    [{ billed_units: null }, {}],
    [null, {}],
  ]
  for (const [usage, expected] of rows) {
    const streamed = decode('stream', [{ type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } }])
    const whole = decode('unary', [{ message: { content: 'a' }, finish_reason: 'COMPLETE', usage }])
    t.strictSame(usageOf(streamed), expected, JSON.stringify(usage))
    t.strictSame(usageOf(whole), expected, JSON.stringify(usage))
  }
})

t.test('billed units are charged where tokens are reported beside them', async t => {
  const billed_units = { input_tokens: 19, output_tokens: 12 }
  const billedOf = (usage: Json) => {
    const events = decode('unary', [{ message: { content: 'a' }, finish_reason: 'COMPLETE', usage }])
    return events.flatMap(event => (event.type === 'usage' ? [event.billed] : []))
  }
  const tokens = { input_tokens: 1549, output_tokens: 103 }
  const billed = { prompt: 19, completion: 12, input_cache_read: 0 }
  t.strictSame(billedOf({ billed_units, tokens, cached_tokens: 992 }), [billed])
  const beyond = { billed_units: { input_tokens: 1000, output_tokens: 12 }, tokens, cached_tokens: 992 }
  t.strictSame(billedOf(beyond), [{ prompt: 1000, completion: 12, input_cache_read: 443 }], 'of the cache, too')
  t.strictSame(billedOf({ billed_units }), [undefined])
  t.strictSame(billedOf({ tokens }), [undefined])
})

t.test('refusals with a status say whose fault they are', async t => {
  const to = target({ secret: 'secret-0123456789' })
  checkErrors(t, wired, to)
  const echo = { type: 'message-end', delta: { finish_reason: 'ERROR', error: 'bad secret-0123456789' } }
  t.match(errorsOf(decode('stream', [echo], to)), [{ detail: 'bad ***' }], 'E13 inside a stream')
})

t.test('thinking survives three turns byte for byte, for its provider alone', async t => {
  const messages: Json[] = [hi]
  const made: unknown[] = []
  for (let turn = 0; turn < 3; turn++) {
    const content = [{ type: 'thinking', thinking: `Think 🙂 ${turn}\n` }]
    const tool_calls = [{ id: `f_${turn}`, type: 'function', function: { name: 'f', arguments: '{}' } }]
    const message = turn < 2 ? { content, tool_calls } : { content: [...content, { type: 'text', text: 'So' }] }
    made.push(message)
    messages.push(turnOf(decode('unary', [{ message, finish_reason: 'COMPLETE' }]), turn !== 1))
    messages.push(turn < 2 ? result(`f_${turn}`) : hi)
    const sent = turnsOf(messages, thinks).filter(({ role }) => role === 'assistant')
    t.equal(JSON.stringify(sent.map(({ role: _, ...rest }) => rest)), JSON.stringify(made))
  }
  const elsewhere = [
    turnsOf(messages, offer({ supports: ['reasoning'] }, { id: 'other' })),
    turnsOf(messages, thinks, { reasoning_effort: 'none' }),
    turnsOf(messages, target()),
  ]
  for (const turns of elsewhere) t.notMatch(JSON.stringify(turns), /thinking|Think/)
  for (const turns of elsewhere) accepts({ model: 'm', messages: turns })
})

t.test('beside a plan there is no thinking, which the wire takes only in its place', async t => {
  const message = {
    content: [{ type: 'thinking', thinking: 'a' }],
    tool_plan: 'b',
    tool_calls: [{ id: 'f_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const turn = turnOf(decode('unary', [{ message, finish_reason: 'TOOL_CALL' }]))
  t.match(turn, { content: 'b', reasoning: 'a' })
  const sent = turnsOf([hi, turn, result('f_1')], thinks)[1]!
  t.equal(sent.tool_plan, 'b')
  t.notOk('content' in sent)
})

t.test('the same request always becomes the same bytes, and a longer conversation begins with them', async t => {
  const messages = [
    { role: 'system', content: 'Long' },
    hi,
    { role: 'assistant', content: 'Plan', tool_calls: [call('call_1', '{"z":1,"a":2}')] },
    result('call_1'),
  ]
  const later = [{ role: 'assistant', content: 'Done' }, hi, { role: 'system', content: 'Now' }]
  checkPrefix(t, later, (more, rest) => {
    const text = JSON.stringify(encode({ messages: [...messages, ...more], ...rest }))
    return text.slice(0, text.indexOf('"content":"ok"'))
  })
})

t.test('any history is refused by name, or accepted by the provider', async t => {
  checkHistories(
    t,
    anyMessages(['a', 'b', 'call_1', ''], ['', ' ', 'x', '\ud83d']),
    messages => encode({ messages }),
    accepts,
  )
})

t.test('the scripted provider takes what is sent, and its answers come back whole and streamed alike', async t => {
  const upstream = await startUpstream(t)
  const url = upstream.url('c').replace(/v1$/, 'v2')
  const tools = [{ type: 'function', function: { name: 'a.b' } }]
  await upstream.script('c', [
    { text: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, cached: 3 } },
    { text: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, cached: 3 } },
    { toolCalls: 'offered', text: 'Let me see' },
    { toolCalls: 'offered', reasoning: 'Hmm' },
    { toolCalls: 'offered' },
    ...failures,
  ])
  const plain = { messages: [hi], user: 'u', presence_penalty: -2, top_p: 1, reasoning_effort: 'low' }
  const facts = (events: Awaited<ReturnType<typeof ask>>) => {
    const { content, reasoning, reasoning_details } = turnOf(events)
    return { content, reasoning, reasoning_details, usage: usageOf(events) }
  }
  const streamed = await ask(wire, url, { ...plain, stream: true }, thinks)
  t.strictSame(facts(streamed), facts(await ask(wire, url, plain, thinks)))
  t.match(facts(streamed), { content: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, input_cache_read: 3 } })

  const messages: Json[] = [hi]
  for (const stream of [true, false]) {
    const turn = turnOf(await ask(wire, url, { messages: [...messages], tools, stream }, thinks))
    t.match(turn, { tool_calls: [{ function: { name: 'a.b', arguments: '{}' } }] })
    const { id } = (turn.tool_calls as { id: string }[])[0]!
    messages.push(turn, result(id, 'fine'), ...(stream ? [hi] : []))
  }
  const last = await ask(wire, url, { messages, tools, stream: true }, thinks)
  t.equal(turnOf(last).content, 'tool said: fine', 'its plan and its thinking are accepted')

  await checkFailures(t, wire, url, thinks)
  const record = await upstream.record('c', { ended: 9 })
  t.strictSame(
    record.flatMap(({ refused }) => refused ?? []),
    [],
  )
})

t.test('Messages clients read which stop sequence has ended an answer', async t => {
  const message = { role: 'assistant', content: [{ type: 'text', text: 'a' }] }
  const data = JSON.stringify({ id: 'x', finish_reason: 'STOP_SEQUENCE', message, usage: {} })
  const endingOf = (stop: string[] | undefined) => {
    const decoder = plugin.wires[0]!.decoder('unary', target(), {
      model: 'm',
      messages: [hi],
      ...(stop && { stop }),
    } as never)
    const last = [...decoder.frame({ data }), ...decoder.end()].at(-1)
    return last?.type === 'finish' ? last.ending?.fields : last
  }
  t.strictSame(endingOf(['.']), { stop_reason: 'stop_sequence', stop_sequence: '.' })
  t.strictSame(endingOf(['.', '!']), { stop_reason: 'stop_sequence', stop_sequence: null }, 'one of several')
  t.equal(endingOf(undefined), undefined, 'a sequence of the model')
})
