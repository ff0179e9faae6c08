/**
 * The wire `openai.chat`. Its tables are `test/golden/openai`: requests with the body that they become, and answers
 * as frames with what they show, one event a line. Ids: docs/contributing/edge-cases.md.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/openai.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event, ReasoningEvent } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { Fold } from '../../src/wire/fold.ts'
import { runs } from '../helpers/runs.ts'
import { type AnswerRow, hi, type Json, show as lineOf, offer, placeOf, subject, textOf } from './golden-kit.ts'
import { decodeAll, deepFreeze, type RawFrame, target } from './wire-kit.ts'

const wired = subject(plugin.wires[0]!, 'openai')
const { wire, names, table, decode } = wired
const read = (name: string) => JSON.parse(wired.read(name))
const answers = table<AnswerRow>('answers')
const requests = names('.request.json').map(name => {
  const { request, mapping, provider } = read(`${name}.request.json`)
  return { name, request: deepFreeze(request) as ChatRequest, to: offer(mapping, provider) }
})

const encode = (request: Json, to = target()) => wired.encode(request, to).body
const errorIn = (events: readonly Event[]): GatewayError | undefined => {
  const last = events.at(-1)
  return last?.type === 'error' ? last.error : undefined
}

/** One event as a line; `start` is left out, for it says the same in every row. */
function show(event: Event): string[] {
  switch (event.type) {
    case 'start':
      return []
    case 'reasoning':
      return [showReasoning(event)]
    case 'image':
      return [`image ${event.choice} ${event.url}`]
    case 'source':
      return [
        `source ${event.choice} ${event.url}${event.title === undefined ? '' : ` ${event.title}`}${placeOf(event)}`,
      ]
    default:
      return [lineOf(event)]
  }
}

function showReasoning({ choice, text, format, block, signature, data }: ReasoningEvent): string {
  if (block === undefined) return `reasoning ${choice} ${text}`
  const sealed = signature === undefined ? (data === undefined ? '' : ` data=${data}`) : ` signature=${signature}`
  return `reasoning ${choice}#${block} ${format} ${text}${sealed}`
}

t.test('golden requests are encoded without touching them', async t => {
  for (const { name, request, to } of requests) {
    const sent = wire.encode(request, to, request.stream === true)
    t.equal(sent.path, '/chat/completions')
    t.strictSame(JSON.parse(JSON.stringify(sent.body)), read(`${name}.body.json`), name)
  }
})

t.test('the same request always becomes the same bytes, in whatever order its fields came', async t => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, inner]) => [key, reversed(inner)])
        .reverse(),
    )
  }
  for (const { name, request, to } of requests) {
    const bytes = (input: ChatRequest) => JSON.stringify(wire.encode(input, to, true).body)
    t.equal(bytes(request), bytes(structuredClone(request)), name)
    const fields = (input: ChatRequest) => Object.keys(wire.encode(input, to, true).body)
    t.strictSame(fields(request), fields(reversed(request) as ChatRequest), name)
  }
  const messages = (input: Json[]) => JSON.stringify(encode({ messages: input }).messages)
  t.equal(messages([{ role: 'user', name: 'a', content: 'b' }]), messages([{ content: 'b', name: 'a', role: 'user' }]))
})

t.test('an earlier turn is encoded alike however the conversation goes on', async t => {
  const part = fc.record({ type: fc.constant('text'), text: fc.string() })
  const said = fc.record({
    role: fc.constantFrom('developer', 'system', 'user', 'assistant'),
    content: fc.oneof(fc.string(), fc.array(part, { minLength: 1 }), fc.constant(null)),
  })
  const holds = fc.property(fc.array(said, { minLength: 1 }), fc.array(said), (turns, more) => {
    const before = encode({ messages: turns }).messages as Json[]
    const after = encode({ messages: [...turns, ...more] }).messages as Json[]
    return JSON.stringify(after.slice(0, before.length)) === JSON.stringify(before)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 50 }))
})

t.test('a conversation without a message is refused before a provider sees it', async t => {
  t.throws(() => encode({ messages: [] }), { status: 400, param: 'messages', message: /have no content/ })
})

t.test('R4 an id of a call that is longer than OpenAI takes is sent as its hash, with its result', async t => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
  const ids = (...given: string[]) => {
    const results = given.map(id => ({ role: 'tool', tool_call_id: id, content: 'ok' }))
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: given.map(call) },
      ...results,
    ]
    const sent = (encode({ messages }) as { messages: { tool_calls?: { id: string }[]; tool_call_id?: string }[] })
      .messages
    const called = sent[1]!.tool_calls!.map(({ id }) => id)
    t.strictSame(
      sent.slice(2).map(({ tool_call_id: id }) => id),
      called,
    )
    return called
  }
  const longest = 'x'.repeat(40)
  // As vLLM makes them.
  const long = `chatcmpl-tool-${'0'.repeat(32)}`
  const [kept, one, two] = ids(longest, long, `${long}1`)
  t.equal(kept, longest)
  t.match(one, /^call_[0-9a-f]{32}$/)
  t.not(one, two)
  t.strictSame(ids(long), [one], 'the same in every request')
})

t.test('R3 each result follows its call: late ones are moved, and missing ones stood in for', async t => {
  const user = (content: string) => ({ role: 'user', content })
  const calls = (...ids: string[]) => ({
    role: 'assistant',
    content: null,
    tool_calls: ids.map(id => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
  })
  const result = (id: string, content = id) => ({ role: 'tool', content, tool_call_id: id })
  const sent = (...messages: object[]) => (encode({ messages }) as { messages: object[] }).messages
  const rows: [says: string, given: object[], made: object[]][] = [
    [
      'missing',
      [user('q'), calls('a', 'b'), result('b'), user('go')],
      [user('q'), calls('a', 'b'), result('a', 'No result'), result('b'), user('go')],
    ],
    ['late', [user('q'), calls('a'), user('go'), result('a')], [user('q'), calls('a'), result('a'), user('go')]],
    ['twice', [user('q'), calls('a'), result('a', '1'), result('a', '2')], [user('q'), calls('a'), result('a', '2')]],
    [
      'an id that comes again',
      [user('q'), calls('a'), result('a', '1'), calls('a')],
      [user('q'), calls('a'), result('a', '1'), calls('a'), result('a', 'No result')],
    ],
  ]
  for (const [says, given, made] of rows) t.strictSame(sent(...given), made, says)
  const kept = [
    [user('q'), calls('a', 'b'), result('b'), result('a'), user('go')],
    [user('q'), calls('a'), user('go'), result('z')],
  ]
  for (const given of kept) t.strictSame(sent(...given), given)
})

t.test('a file and audio are sent with their known fields alone', async t => {
  const url = 'http://169.254.169.254/latest'
  const file = { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' }
  const audio = { data: 'UklGRg==', format: 'wav' }
  const sent = (given: Json) => {
    const content = [
      { type: 'file', file: { ...file, ...given } },
      { type: 'input_audio', input_audio: { ...audio, ...given } },
    ]
    return encode({ model: 'm', messages: [{ role: 'user', content }] })
  }
  t.strictSame(sent({ url, file_url: url }), sent({}))
  t.match(sent({}), { messages: [{ content: [{ file }, { input_audio: audio }] }] })
})

t.test('what a mapping does not support is left out', async t => {
  const search = { web_search: true, tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }
  t.strictSame(Object.keys(encode({ ...search, effort: 'low', reasoning_effort: 'none' })), ['model', 'messages'])
  const to = target({ mapping: { supports: new Set(['reasoning']) } })
  t.equal(encode({ reasoning_effort: 'none' }, to).reasoning_effort, 'none')
  t.equal(encode({ reasoning_effort: 'max' }).reasoning_effort, 'max', 'no effort is ever lowered')
})

t.test('a budget of tokens is the nearest effort that the mapping lists', async t => {
  const effort = (max_tokens: number, reasoningEfforts: string[] = []) =>
    encode({ reasoning: { max_tokens } }, target({ mapping: { reasoningEfforts } })).reasoning_effort
  t.equal(effort(2000), 'medium')
  t.equal(effort(32_000), 'high', 'of the usual ones where it lists none')
  t.equal(effort(32_000, ['none', 'low', 'xhigh', 'max']), 'max')
  t.equal(effort(1, ['none']), undefined, 'never none')
})

t.test('a field of the provider turns reasoning on and off', async t => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const named = { type: 'function', function: { name: 'f' } }
  const word = { field: 'thinking.type', on: 'enabled', off: 'disabled' }
  const flag = { field: 'enable_thinking', on: true, off: false, budget: 'thinking_budget' }
  const [on, off] = [{ thinking: { type: 'enabled' } }, { thinking: { type: 'disabled' } }]
  const rows: [says: string, reasoningSwitch: Json, efforts: string[], request: Json, sent: Json][] = [
    ['nothing said', word, ['none', 'high'], {}, {}],
    ['an effort', word, ['none', 'high'], { reasoning_effort: 'high' }, { ...on, reasoning_effort: 'high' }],
    [
      'an effort that is not known',
      word,
      ['high'],
      { reasoning: { effort: 'low' } },
      { ...on, reasoning_effort: 'low' },
    ],
    ['none', word, ['none', 'high'], { reasoning_effort: 'none' }, off],
    ['an effort of a model without', flag, [], { reasoning_effort: 'low' }, { enable_thinking: true }],
    ['an effort of a model that knows none', flag, ['none'], { reasoning_effort: 'low' }, { enable_thinking: true }],
    ['a budget', flag, [], { reasoning: { max_tokens: 500 } }, { enable_thinking: true, thinking_budget: 500 }],
    [
      'a budget before an effort',
      flag,
      ['high'],
      { reasoning: { effort: 'high', max_tokens: 5 } },
      { enable_thinking: true, thinking_budget: 5 },
    ],
    [
      'a budget beyond the limit',
      flag,
      [],
      { reasoning: { max_tokens: 500 }, max_tokens: 100 },
      { enable_thinking: true, thinking_budget: 100, max_tokens: 100 },
    ],
    ['a limit', flag, [], { max_tokens: 100 }, { thinking_budget: 100, max_tokens: 100 }],
    [
      'a limit of the text alone',
      flag,
      [],
      { max_tokens: 9, reasoning_effort: 'none' },
      { enable_thinking: false, max_tokens: 9 },
    ],
    ['a limit of text and reasoning', word, [], { max_tokens: 9 }, { max_tokens: 9 }],
    [
      'a limit where it is always on',
      { field: 'a', on: 'b', budget: 'c' },
      [],
      { max_tokens: 9, reasoning_effort: 'none' },
      { max_tokens: 9, c: 9 },
    ],
    ['a budget that has no field', word, [], { reasoning: { max_tokens: 500 } }, on],
    ['a forced tool', word, ['high'], { tools, tool_choice: 'required', reasoning_effort: 'high' }, off],
    ['a named tool', flag, [], { tools, tool_choice: named }, { enable_thinking: false }],
    [
      'a tool that may be called',
      flag,
      [],
      { tools, tool_choice: 'auto', reasoning_effort: 'low' },
      { enable_thinking: true },
    ],
    ['a choice without tools', flag, [], { tool_choice: 'required' }, {}],
    ['none where it is always on', { field: 'thinking.type', on: 'enabled' }, [], { reasoning_effort: 'none' }, {}],
    [
      'a forced tool where it is always on',
      { field: 'a', on: 'b' },
      [],
      { tools, tool_choice: 'required', reasoning_effort: 'low' },
      { a: 'b' },
    ],
  ]
  for (const [says, reasoningSwitch, reasoningEfforts, request, sent] of rows) {
    const {
      model: _model,
      messages: _messages,
      tools: _tools,
      tool_choice: _choice,
      ...body
    } = encode(request, offer({ supports: ['reasoning', 'tools'], reasoningSwitch, reasoningEfforts }))
    t.strictSame(body, sent, says)
  }
})

t.test('reasoning with a limit of its own makes an answer up to twice as long', async t => {
  const flag = { field: 'enable_thinking', on: true, off: false, budget: 'thinking_budget' }
  const rows: [says: string, supports: string[], reasoningSwitch: Json, request: Json, limits: number | undefined][] = [
    ['a field for its budget', ['reasoning'], flag, {}, 2],
    ['the same of a request without reasoning', ['reasoning'], flag, { reasoning_effort: 'none' }, undefined],
    ['a model without reasoning', [], flag, {}, undefined],
    ['no field for a budget', ['reasoning'], { field: 'thinking.type', on: 'enabled' }, {}, undefined],
  ]
  for (const [says, supports, reasoningSwitch, request, limits] of rows) {
    const { output } = wired.encode({ max_tokens: 9, ...request }, offer({ supports, reasoningSwitch }))
    t.equal(output?.limits, limits, says)
  }
})

t.test('answers in all dialects give the same events', async t => {
  for (const { name, mode = 'stream', frames, shows } of answers) {
    t.strictSame(decode(mode, frames).flatMap(show), shows, name)
  }
})

t.test('a start event opens an answer, once, with what is known of it', async t => {
  const chunk = (more: Json) => ({ ...more, choices: [{ delta: { content: 'a' } }] })
  const starts = (...frames: unknown[]) =>
    decode('stream', [...frames, '[DONE]']).filter(({ type }) => type === 'start')
  t.strictSame(starts(chunk({ id: 'x1', model: 'm' }), chunk({ id: 'x2', model: 'n' })), [
    { type: 'start', id: 'x1', model: 'm' },
  ])
  t.strictSame(
    starts({ choices: [], id: '', model: '' }, chunk({ id: '', model: null })),
    [{ type: 'start' }],
    'C1, C34',
  )
  t.strictSame(starts({ id: 'x', choices: [], usage: { prompt_tokens: 1 } }), [], 'usage alone is no answer')
})

/** docs/contributing/edge-cases.md#byte-samples, after framing. */
const nasty: RawFrame[] = [
  '{"choices":[],"id":"","model":"","prompt_filter_results":[]}',
  '{"id":"x1","choices":[{"delta":{"role":"assistant","content":"H\\u00e9"}}]}',
  { name: 'ping', data: '{}' },
  '{"id":"x1","choices":[{"index":0,"delta":\n{"content":"🙂"}}]}',
  '{"id":"x1","choices":[{"index":0,"delta":{"tool_calls":[{"id":"a1","type":"function","function":{"name":"f","arguments":{"k":1}}}]}}]}',
  '{"id":"x1","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":5}}]}',
  '{"id":"x1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}',
  '[DONE]',
]

t.test('the nasty stream is one valid answer', async t => {
  t.strictSame(decodeAll(wire.decoder('stream', target()), nasty), [
    { type: 'start', id: 'x1' },
    { type: 'text', choice: 0, text: 'Hé' },
    { type: 'text', choice: 0, text: '🙂' },
    { type: 'tool', choice: 0, index: 0, id: 'a1', name: 'f', args: '{"k":1}' },
    { type: 'usage', usage: { prompt: 3, completion: 5 } },
    { type: 'usage', usage: { prompt: 3, completion: 5 } },
    { type: 'finish', choice: 0, reason: 'tool_calls' },
  ])
})

t.test('an answer is done at its terminator, at an error, and at the end of a whole body', async t => {
  const done = (mode: 'stream' | 'unary', data: string, name?: string) => {
    const decoder = wire.decoder(mode, target())
    t.equal(decoder.done, false)
    decoder.frame({ data, name })
    return decoder.done
  }
  t.equal(done('stream', '{"choices":[{"delta":{},"finish_reason":"stop"}]}'), false)
  t.equal(done('stream', ' [DONE]\n'), true, 'S9')
  t.equal(done('stream', '{"error":"no"}'), true)
  t.equal(done('unary', '{"choices":[{"message":{"content":"a"}}]}'), true)
})

t.test('an error inside an answer has the status that it stands for', async t => {
  const began = { choices: [{ delta: { content: 'a' } }] }
  for (const { name, body, error } of table<{ body: unknown; error: Json }>('faults')) {
    t.match(errorIn(decode('stream', [body])), error, `${name}, first (E2)`)
    const late = decode('stream', [began, body, began, '[DONE]'])
    t.match(errorIn(late), error, `${name}, after output (E3)`)
    t.equal(late.length, 3, `${name}: nothing follows it`)
    t.match(errorIn(decode('unary', [body])), error, `${name}, as a whole body (S19)`)
  }
  for (const [data, message] of [
    ['{"message":"m"}', 'm'],
    ['"m"', '"m"'],
    ['m', 'm'],
    ['{}', '{}'],
  ] as const) {
    const events = decodeAll(wire.decoder('stream', target()), [{ name: 'error', data }])
    t.match(errorIn(events), { status: 502, failover: true, message }, `an event named error: ${data}`)
  }
})

t.test('what only looks like an error is none', async t => {
  for (const nothing of [null, false, 0]) {
    const frame = { error: nothing, choices: [{ error: nothing, message: { content: 'a' }, finish_reason: 'stop' }] }
    t.strictSame(decode('unary', [frame]).flatMap(show), ['text 0 a', 'finish 0 stop'], String(nothing))
  }
  const frame = { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], base_resp: { status_code: 0 } }
  t.strictSame(decode('stream', [frame]).flatMap(show), ['text 0 a', 'finish 0 stop'])
})

t.test('usage that comes with an error precedes it', async t => {
  const usage = { prompt_tokens: 3, completion_tokens: 1 }
  const events = decode('stream', [{ error: { code: 500, message: 'x' }, choices: [], usage }])
  t.strictSame(events.flatMap(show), ['usage prompt=3 completion=1', 'error 502 upstream_error'])
})

t.test('E13 an answer that echoes the credential does not show it', async t => {
  const to = target({ secret: 'hunter2-hunter2' })
  const body = { error: { message: 'bad key hunter2-hunter2', code: 401 } }
  t.equal(errorIn(decode('stream', [body], to))?.detail, 'bad key ***')
  t.equal(wire.error(401, JSON.stringify(body), to).detail, 'bad key ***')
})

t.test('an HTTP error is read in any dialect', async t => {
  const rows: [number, string, Json][] = [
    [
      400,
      '{"error":{"message":"no n","param":"n","code":"invalid_value"}}',
      { status: 400, param: 'n', failover: false },
    ],
    [429, '{"error":{"message":"wait"}}', { status: 503, code: 'upstream_rate_limited', failover: true }],
    [429, '{"error":{"message":"none left","type":"insufficient_quota"}}', { status: 503, code: 'upstream_quota' }],
    [500, '<html>oops</html>', { status: 502, message: 'the provider answered with status 500', failover: true }],
    [503, 'Loading model', { status: 503, message: 'Loading model' }],
  ]
  for (const [status, body, expected] of rows) t.match(wire.error(status, body, target()), expected, body)
})

t.test('ids that the gateway makes differ from answer to answer', async t => {
  const frame = { choices: [{ message: { tool_calls: [{ function: { name: 'f' } }, { function: { name: 'g' } }] } }] }
  const ids = () => decode('unary', [frame]).flatMap(event => (event.type === 'tool' && event.id ? [event.id] : []))
  const all = [...ids(), ...ids()]
  t.equal(new Set(all).size, 4)
  for (const id of all) t.match(id, /^call_[A-Za-z0-9]{24}_0_[01]$/, 'R4 fits every provider')
})

/** A turn as a client sends it back: each event an entry, or the entries of a block joined. */
function turnOf(events: readonly Event[], joined: boolean): Json {
  const entries: Json[] = []
  for (const event of events) {
    if (event.type !== 'reasoning') continue
    const { text, format, block, signature, data } = event
    const type = data === undefined ? 'reasoning.text' : 'reasoning.encrypted'
    const last = entries.at(-1)
    if (joined && last && last.block_index === block && last.data === undefined && data === undefined) {
      last.text = `${last.text}${text}`
      if (signature !== undefined) last.signature = signature
    } else {
      const entry = { type, text, format, block_index: block, signature, data }
      entries.push(JSON.parse(JSON.stringify(entry)))
    }
  }
  return { role: 'assistant', content: 'a', reasoning_details: entries }
}

t.test('reasoning details go back unchanged to the provider that made them, and to no other', async t => {
  const details = [
    { type: 'reasoning.text', text: 'I think', signature: 's+/=1', format: 'anthropic-claude-v1', id: null, index: 0 },
    { type: 'reasoning.summary', summary: 'In "brief"', format: 'openai-responses-v1', id: 'r1', index: 1 },
    { type: 'reasoning.encrypted', data: 'ZZ==', format: 'openai-responses-v1', id: 'r1', index: 1 },
    {
      type: 'reasoning.encrypted',
      data: 'YY==',
      format: 'openai-responses-v1',
      id: 'r2',
      index: 1,
      more: { deep: [1] },
    },
    { type: 'reasoning.text', text: '', signature: 's2', index: 4 },
  ]
  const frames = [{ choices: [{ message: { content: 'a', reasoning_details: details }, finish_reason: 'stop' }] }]
  const provider = { reasoningReplay: 'reasoning_details' } as const
  const send = (turn: Json, to: Target) => (encode({ messages: [hi, turn, hi] }, to).messages as Json[])[1]!
  for (const joined of [true, false]) {
    const turn = turnOf(decode('unary', frames, target({ provider })), joined)
    t.strictSame(send(turn, target({ provider })).reasoning_details, details)
    t.notOk('reasoning_details' in send(turn, target({ provider: { ...provider, id: 'other' } })))
    t.notOk('reasoning_details' in send(turn, target()), 'who does not ask for it does not get it')
  }
})

t.test('what a provider adds to a call goes back with it, and to no other provider', async t => {
  const extra_content = { google: { thought_signature: 's+/=1' } }
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"k":1}' } }
  const finish = { finish_reason: 'tool_calls' }
  const whole = [{ choices: [{ message: { tool_calls: [{ ...call, extra_content }] }, ...finish }] }]
  const streamed = [
    { choices: [{ delta: { tool_calls: [{ index: 0, ...call, extra_content }] } }] },
    { choices: [{ delta: {}, ...finish }] },
  ]
  for (const [mode, frames] of [
    ['unary', whole],
    ['stream', streamed],
  ] as const) {
    const [made] = decode(mode, frames, target()).filter(event => event.type === 'tool')
    const kept = { ...call, extra_content: { vendor: { thought_signature: made?.signature } } }
    const messages = [hi, { role: 'assistant', content: null, tool_calls: [kept] }, hi]
    const sent = (to: Target) => (encode({ messages }, to).messages as { tool_calls: Json[] }[])[1]!.tool_calls[0]
    t.strictSame(sent(target()), { ...call, extra_content }, mode)
    t.strictSame(sent(target({ provider: { id: 'other' } })), call, `${mode}, another provider`)
  }
})

/** `text` cut at any places. */
const cut = (text: string) =>
  fc
    .uniqueArray(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 12 })
    .map(at => [0, ...at.sort((a, b) => a - b), text.length])
    .map(at => at.slice(1).map((end, i) => text.slice(at[i], end)))

t.test('any way of cutting an answer into deltas gives the same answer', async t => {
  const content = (piece: string) => ({ content: piece })
  const call = (piece: string, i: number) => ({
    tool_calls: [{ index: 0, function: { ...(i === 0 ? { name: 'f' } : {}), arguments: piece } }],
  })
  const tool = (args: string) => ({ tools: [{ id: 'call_x_0_0', name: 'f', args }], finish: 'tool_calls' })
  const rows: [string, (piece: string, i: number) => Json, Json][] = [
    ['\n <think>r</thin</think>\n\na <think>b', content, { reasoning: 'r</thin', text: 'a <think>b' }],
    ['<thin ice', content, { reasoning: '', text: '<thin ice' }],
    ['{"k":"{}"}', call, tool('{"k":"{}"}')],
    ['"{\\"k\\":1}"', call, tool('{"k":1}')],
    ['null', call, tool('{}')],
  ]
  for (const [text, deltaOf, expected] of rows) {
    const holds = fc.property(cut(text), pieces => {
      const frames = pieces.map((piece, i) => ({ id: 'x', choices: [{ delta: deltaOf(piece, i) }] }))
      const fold = new Fold()
      fold.add(decode('stream', [...frames, '[DONE]']))
      const facts = Object.entries(fold.choices[0]!).filter(([key]) => key in expected)
      assert.deepEqual(JSON.parse(JSON.stringify(Object.fromEntries(facts))), expected)
    })
    t.doesNotThrow(() => fc.assert(holds, { numRuns: 60 }), text)
  }
})

t.test('any way of grouping the frames of an answer gives the same events', async t => {
  const streams = answers.filter(({ mode, frames }) => mode === undefined && frames.length > 1)
  const holds = fc.property(fc.constantFrom(...streams), fc.integer({ min: 1, max: 5 }), ({ frames, shows }, size) => {
    const decoder = wire.decoder('stream', target())
    const events: Event[] = []
    for (let i = 0; i < frames.length && !decoder.done; i += size) {
      // What came in one group with the terminator is still handed on.
      for (const frame of frames.slice(i, i + size)) events.push(...decoder.frame({ data: textOf(frame) }))
    }
    assert.deepEqual([...events, ...decoder.end()].flatMap(show), shows)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 100 }))
})

t.test('events that repeat the one before but for its text lose none of it', async t => {
  const piece = fc.record({
    index: fc.nat({ max: 2 }),
    content: fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('', '"', '\\', '"content":', '\n')),
    more: fc.constantFrom({}, {}, {}, { role: 'assistant' }, { refusal: null }),
    beside: fc.constantFrom({}, {}, {}, { obfuscation: 'x1' }, { obfuscation: 'y22' }, { usage: null }),
  })
  const holds = fc.property(fc.array(piece, { minLength: 1, maxLength: 40 }), pieces => {
    const frames = pieces.map(({ index, content, more, beside }) => ({
      id: 'x',
      choices: [{ index, delta: { ...more, content }, finish_reason: null }],
      ...beside,
    }))
    const fold = new Fold()
    fold.add(
      decode('stream', [{ id: 'x', choices: [0, 1, 2].map(index => ({ index, delta: {} })) }, ...frames, '[DONE]']),
    )
    for (const index of [0, 1, 2]) {
      const said = pieces.filter(piece => piece.index === index).map(({ content }) => content)
      // Blank text before the first word is held back until it is clear that no thinking follows.
      assert.equal(fold.choices[index]?.text.trim() ?? '', said.join('').trim())
    }
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(300) }))
})
