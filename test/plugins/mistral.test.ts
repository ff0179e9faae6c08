/**
 * The wire `mistral.chat`. Its tables are `test/golden/mistral`: requests with the body that they become, answers as
 * frames with what they show, one event a line. Ids: docs/contributing/edge-cases.md.
 */
import t from 'tap'
import { wireId } from '../../plugins/mistral/turns.ts'
import { plugin } from '../../plugins/mistral.ts'
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

const wired = subject(plugin.wires[0]!, 'mistral')
const { wire, read, table, decode } = wired
const thinks = offer({ supports: ['reasoning'] })
const encode = (request: Json, to = target()) => wired.encode(request, to).body
const turnsOf = (messages: Json[], to = target()) => encode({ messages: [...messages] }, to).messages as Json[]

const accepts = await rulesOf('mistral')

t.test('the registry has the wire', async t => {
  t.equal(new Registry().wires.get('mistral.chat'), wire)
})

t.test('golden requests are encoded without touching them', async t => {
  for (const { name, mapping, request, body } of table<RequestRow>('requests')) {
    const sent = wired.encode(request, offer(mapping), request.stream === true)
    t.equal(sent.path, '/chat/completions')
    t.strictSame(JSON.parse(JSON.stringify(sent.body)), body, name)
    accepts(sent.body)
  }
})

t.test('parameters are mapped, clamped or dropped', async t => {
  await checkParameters(t, wired)
})

t.test('histories become turns in the order of the wire', async t => {
  // In a row, an id that begins with @ stands for the hash of the rest.
  const hashed = (key: string, value: unknown) =>
    /id$/.test(key) && typeof value === 'string' && value.startsWith('@') ? wireId(value.slice(1), 0) : value
  for (const { name, messages, turns } of table<{ messages: Json[]; turns: Json[] }>('histories')) {
    const sent = encode({ messages })
    t.strictSame(sent.messages, JSON.parse(JSON.stringify(turns), hashed), name)
    accepts(sent)
  }
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, wired)
})

t.test('R4 ids are nine letters and digits, and different for different ids', async t => {
  const ids = ['', 'a', 'call_1', 'call_2', 'x'.repeat(99), 'gSIMJiOk!', 'é', '12345678', '1234567890']
  const all = ids.flatMap(id => [wireId(id, 0), wireId(id, 1), wireId(id, 2)])
  for (const id of all) t.match(id, /^[a-zA-Z0-9]{9}$/)
  t.equal(new Set(all).size, all.length)
  t.equal(wireId('gSIMJiOkT', 0), 'gSIMJiOkT', 'its own stay')
  t.equal(wireId('call_1', 0), wireId('call_1', 0))
})

t.test('answers in all forms give the same events', async t => {
  for (const { name, mode = 'stream', frames, shows } of table<AnswerRow>('answers')) {
    t.strictSame(decode(mode, frames).map(show), shows, name)
  }
})

t.test('any way of cutting a stream into bytes gives the same events', async t => {
  const whole = checkCuts(t, wire, Buffer.from(read('stream.sse')))
  t.strictSame(whole.map(show), [
    'start m1 magistral-medium-2509',
    'reasoning 0#0 Hé 🙂, the',
    'reasoning 0#0  weather.',
    'reasoning 0#0 sealed acme:{"type":"thinking","signature":"Eq+/=="}',
    'text 0 Let me ',
    'text 0 look 日本.',
    'usage prompt=124 completion=22 input_cache_read=64',
    'tool 0.0 id=gSIMJiOkT name=weather args={"city": "Zürich"}',
    'tier default',
    'finish 0 tool_calls',
  ])
})

t.test('an answer is done at its terminator, at an error, and at the end of a whole body', async t => {
  const done = (mode: Mode, data: string) => {
    const decoder = wire.decoder(mode, target())
    t.equal(decoder.done, false)
    decoder.frame({ data })
    t.strictSame(decoder.done ? decoder.frame({ data: '{"choices":[{"delta":{"content":"z"}}]}' }) : [], [])
    return decoder.done
  }
  t.equal(done('stream', '{"choices":[{"delta":{},"finish_reason":"stop"}]}'), false)
  t.equal(done('stream', '[DONE]'), true)
  t.equal(done('stream', '{"object":"error","message":"no"}'), true)
  t.equal(done('unary', '{"choices":[{"message":{"content":"a"}}]}'), true)
})

t.test('C37 cached tokens are found wherever they stand, streamed and whole alike', async t => {
  const rows: [Json, number | undefined][] = [
    [{ num_cached_tokens: 8 }, 8],
    [{ prompt_tokens_details: { cached_tokens: 8 } }, 8],
    [{ prompt_token_details: { cached_tokens: 8 } }, 8],
    [{ num_cached_tokens: 8, prompt_tokens_details: { cached_tokens: 0 }, prompt_token_details: null }, 8],
    [{ num_cached_tokens: null, prompt_tokens_details: null }, undefined],
  ]
  for (const [more, cached] of rows) {
    const usage = { prompt_tokens: 20, completion_tokens: 2, total_tokens: 22, ...more }
    const expected = { prompt: 20, completion: 2, ...(cached !== undefined && { input_cache_read: cached }) }
    const streamed = decode('stream', [{ choices: [{ delta: {}, finish_reason: 'stop' }], usage }, '[DONE]'])
    const whole = decode('unary', [{ choices: [{ message: { content: '' }, finish_reason: 'stop' }], usage }])
    t.strictSame(usageOf(streamed), expected, JSON.stringify(more))
    t.strictSame(usageOf(whole), expected, JSON.stringify(more))
  }
})

t.test('refusals with a status say whose fault they are', async t => {
  checkErrors(t, wired)
})

t.test('thinking survives three turns byte for byte, for its provider alone', async t => {
  const messages: Json[] = [hi]
  const made: unknown[] = []
  for (let turn = 0; turn < 3; turn++) {
    const thinking = (text: string, signature?: string) => ({
      type: 'thinking',
      thinking: [{ type: 'text', text }],
      ...(signature && { signature }),
      closed: true,
    })
    const content = [thinking(`Think 🙂 ${turn}`, `Eq${turn}+/==:é`), thinking('more'), { type: 'text', text: 'So' }]
    const tool_calls = [{ id: `aaaaaaaa${turn}`, function: { name: 'f', arguments: '{}' } }]
    const answer = decode('unary', [{ choices: [{ message: { content, tool_calls }, finish_reason: 'tool_calls' }] }])
    made.push(content)
    messages.push(turnOf(answer, turn !== 1), result(`aaaaaaaa${turn}`))
    const sent = turnsOf(messages, thinks).filter(({ role }) => role === 'assistant')
    t.equal(JSON.stringify(sent.map(({ content }) => content)), JSON.stringify(made))
  }
  const elsewhere = [
    turnsOf(messages, target({ provider: { id: 'other' }, mapping: { supports: new Set(['reasoning']) } })),
    turnsOf(messages, offer({ supports: ['reasoning'] }, { id: 'other', reasoningReplay: 'reasoning' })),
    turnsOf(messages, target()),
  ]
  for (const turns of elsewhere) t.notMatch(JSON.stringify(turns), /thinking|Eq0|Think/)
})

t.test('reasoning that a client keeps as text alone goes back where the manifest says so', async t => {
  const said = (reasoning: Json, replay?: string) =>
    turnsOf(
      [hi, { role: 'assistant', content: 'a', ...reasoning }, hi],
      offer({ supports: ['reasoning'] }, { reasoningReplay: replay }),
    )[1]!.content
  const parts = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'r' }], closed: true },
    { type: 'text', text: 'a' },
  ]
  t.strictSame(said({ reasoning: 'r' }, 'reasoning'), parts)
  t.strictSame(said({ reasoning_content: 'r' }, 'reasoning_content'), parts)
  t.equal(said({ reasoning: 'r' }), 'a')
  t.equal(said({ reasoning: 'r' }, 'reasoning_details'), 'a')
  t.equal(said({ reasoning: '' }, 'reasoning'), 'a')
  const forged = { reasoning_details: [{ type: 'reasoning.text', text: 'r', signature: 'acme:{"type":"text"}' }] }
  t.equal(said({ ...forged, reasoning: 'r' }, 'reasoning'), 'a', 'what is no seal of thinking is none')
})

t.test('the same request always becomes the same bytes, and a longer conversation begins with them', async t => {
  const messages = [
    { role: 'system', content: 'Long' },
    hi,
    { role: 'assistant', tool_calls: [call('call_1', '{"z":1,"a":2}')] },
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
    anyMessages(['a', 'b', 'call_1', 'gSIMJiOkT', ''], ['', ' ', 'x', '\ud83d']),
    messages => encode({ messages }),
    accepts,
  )
})

t.test('the scripted provider takes what is sent, and its answers come back whole and streamed alike', async t => {
  const upstream = await startUpstream(t)
  const url = `${upstream.url('m')}m`
  const tools = [{ type: 'function', function: { name: 'a.b' } }]
  await upstream.script('m', [
    { text: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, cached: 3 } },
    { text: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, cached: 3 } },
    { toolCalls: 'offered', text: 'Let me see', reasoning: 'Hmm' },
    { toolCalls: 'offered' },
    ...failures,
  ])
  const plain = { messages: [hi], n: 2, user: 'u', reasoning_effort: 'none' }
  const facts = (events: Awaited<ReturnType<typeof ask>>) => {
    const { content, reasoning, reasoning_details } = turnOf(events)
    const tier = events.find(event => event.type === 'tier')
    return { content, reasoning, reasoning_details, tier, usage: usageOf(events) }
  }
  const streamed = await ask(wire, url, { ...plain, stream: true }, thinks)
  t.strictSame(facts(streamed), facts(await ask(wire, url, plain, thinks)))
  t.match(facts(streamed), { content: 'Hello', reasoning: 'Hmm, I see', usage: { prompt: 9, input_cache_read: 3 } })

  const first = await ask(wire, url, { messages: [hi], tools, stream: true }, thinks)
  const turn = turnOf(first)
  const { id } = (turn.tool_calls as { id: string }[])[0]!
  t.match(turn, { content: 'Let me see', tool_calls: [{ function: { name: 'a.b', arguments: '{}' } }] })
  const second = await ask(wire, url, { messages: [hi, turn, result(id, 'fine')], tools, stream: true }, thinks)
  t.equal(turnOf(second).content, 'tool said: fine', 'its own signature is accepted')

  await checkFailures(t, wire, url, thinks)
  const record = await upstream.record('m', { ended: 8 })
  t.strictSame(
    record.flatMap(({ refused }) => refused ?? []),
    [],
  )
})
