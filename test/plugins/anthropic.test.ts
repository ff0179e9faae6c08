/**
 * The wire `anthropic.messages`. Its tables are `test/golden/anthropic`: requests with the body that they become,
 * streams with their events, and one `*.table.json` per kind of edge case. Ids: docs/contributing/edge-cases.md.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/anthropic.ts'
import { strictSchema } from '../../plugins/shared/claude/schema.ts'
import { fromWireName, toWireName } from '../../plugins/shared/tool-name.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import type { Decoder } from '../../src/core/wire.ts'
import { exchange } from '../core/kit.ts'
import {
  anyMessages,
  checkErrors,
  checkHistories,
  checkParameters,
  checkPrefix,
  checkRefusals,
} from './golden-checks.ts'
import { call, contentOf, errorsOf, hi, type Json, offer, subject, usageOf } from './golden-kit.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

interface Turn {
  role: string
  content: Json[]
}

const wired = subject(plugin.wires[0]!, 'anthropic')
const { wire, read, names, table, encode, decode } = wired
const turnsOf = (messages: Json[], to?: Target) => encode({ messages: [...messages] }, to).body.messages as Turn[]

t.test('golden requests are encoded without touching them', async t => {
  for (const name of names('.request.json')) {
    const { mapping, request } = deepFreeze(JSON.parse(read(`${name}.request.json`)))
    const sent = wire.encode(request, offer(mapping), request.stream === true)
    t.same(
      { path: sent.path, body: JSON.parse(JSON.stringify(sent.body)) },
      {
        path: '/messages',
        body: JSON.parse(read(`${name}.body.json`)),
      },
      name,
    )
  }
})

t.test('golden streams give the expected events, also without their final event', async t => {
  for (const name of names('.sse')) {
    const frames = [...read(`${name}.sse`).matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, name = '', data = '']) => ({
      name,
      data,
    }))
    const expected = JSON.parse(read(`${name}.events.json`))
    t.same(decodeAll(wire.decoder('stream', target()), frames), expected, name)
    const cut = frames.slice(0, -1)
    t.same(decodeAll(wire.decoder('stream', target()), cut), expected, `${name}: S10 ends with its bytes`)
  }
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, wired)
})

t.test('histories become alternating turns', async t => {
  for (const { name, messages, turns } of table<{ messages: Json[]; turns: Turn[] }>('histories')) {
    t.same(turnsOf(messages), turns, name)
  }
})

t.test('parameters are mapped, clamped or dropped', async t => {
  await checkParameters(t, wired)
})

t.test('the manifest decides the API version, and with it whether sampling parameters exist', async t => {
  const temperature = (version: string) =>
    encode({ temperature: 1 }, target({ provider: { headers: { 'Anthropic-Version': version } } })).body.temperature
  t.equal(temperature('2023-06-01'), 1)
  t.equal(temperature('2026-10-21'), undefined)
})

t.test('only a file by id needs a beta token, and the manifest keeps its own', async t => {
  const messages = [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file_1' } }] }]
  const version = { 'anthropic-version': '2023-06-01' }
  const versioned = target({ provider: { headers: version } })
  t.equal(encode({}, versioned).headers, undefined)
  t.same(encode({ messages }, versioned).headers, { 'anthropic-beta': 'files-api-2025-04-14' })
  const to = target({ provider: { headers: { ...version, 'Anthropic-Beta': 'x-1' } } })
  t.same(encode({ messages }, to).headers, { 'Anthropic-Beta': 'x-1,files-api-2025-04-14' })
})

/** What a client sends back of an answer: every reasoning event as a detail of its own. */
function replayOf(events: Event[]): Json {
  const details: Json[] = []
  const calls: { id: string; args: string }[] = []
  for (const event of events) {
    if (event.type === 'reasoning') {
      const { text, format, block, signature, data } = event
      details.push({ type: 'reasoning.text', text, format, block_index: block, signature, data })
    }
    if (event.type === 'tool' && event.id) calls.push({ id: event.id, args: '' })
    if (event.type === 'tool') calls[event.index]!.args += event.args ?? ''
  }
  const tool_calls = calls.map(({ id, args }) => call(id, args))
  return { role: 'assistant', content: null, reasoning_details: details, tool_calls }
}

t.test('thinking survives three turns byte for byte, for the provider that signed it alone', async t => {
  const messages: Json[] = [hi]
  const made: Json[][] = []
  for (let turn = 0; turn < 3; turn++) {
    const blocks: Json[] = [
      { type: 'thinking', thinking: `Think 🙂 ${turn}`, signature: `Eq${turn}+/==:é` },
      { type: 'redacted_thinking', data: `enc${turn}==` },
      { type: 'thinking', thinking: '', signature: `omitted${turn}` },
      { type: 'tool_use', id: `t${turn}`, name: 'f', input: { turn } },
    ]
    const answer = decode('unary', [{ type: 'message', content: blocks, stop_reason: 'tool_use' }])
    made.push(blocks)
    messages.push(replayOf(answer), { role: 'tool', tool_call_id: `t${turn}`, content: 'ok' })
    const { body } = encode({ messages: [...messages], reasoning_effort: 'low' }, offer({ supports: ['reasoning'] }))
    const sent = (body.messages as Turn[]).filter(({ role }) => role === 'assistant')
    t.equal(JSON.stringify(sent.map(({ content }) => content)), JSON.stringify(made))
  }
  const elsewhere = turnsOf(messages, target({ provider: { id: 'other' } }))
  t.notMatch(JSON.stringify(elsewhere), /thinking|Eq0|enc0|omitted0/)
})

t.test('a breakpoint ends the same bytes, each time and in a longer conversation', async t => {
  const messages: Json[] = [
    { role: 'system', content: [{ type: 'text', text: 'Long', cache_control: { type: 'ephemeral' } }] },
    { role: 'user', content: 'Go' },
    { role: 'assistant', tool_calls: [call('a|b', '{"z":1,"a":2}')] },
    { role: 'tool', tool_call_id: 'a|b', content: 'ok', tool_result_cache_control: { type: 'ephemeral' } },
  ]
  const later = [
    { role: 'assistant', content: 'Done' },
    { role: 'user', content: 'More' },
    { role: 'system', content: 'Now' },
  ]
  const tools = ['z', 'a'].map(name => ({ type: 'function', function: { name } }))
  const first = checkPrefix(t, later, (more, rest) => {
    const text = JSON.stringify(encode({ tools, messages: [...messages, ...more], ...rest }).body)
    return text.slice(0, text.lastIndexOf('"cache_control"'))
  })
  t.ok(first.includes('"content":"ok"'))
})

t.test('R19 tool names are spelt in the alphabet of the wire and read back', async t => {
  t.equal(toWireName('get_weather-2'), 'get_weather-2')
  const pieces = fc.array(fc.oneof(fc.constantFrom('_', 'u', '002e', 'a', '_u0', '.'), fc.string({ maxLength: 2 })), {
    maxLength: 8,
  })
  fc.assert(
    fc.property(pieces, parts => {
      const name = parts.join('')
      const spelt = toWireName(name)
      return /^[a-zA-Z0-9_-]*$/.test(spelt) && fromWireName(spelt) === name
    }),
    { numRuns: 1000, seed: 1 },
  )
  for (const name of ['a_u002e_b', 'a_uabcd.', '_u10ffff_', 'json_answer', '日本.🙂']) {
    t.equal(fromWireName(toWireName(name)), name)
  }
  t.equal(fromWireName('_uffffff_'), '_uffffff_', 'what is no character stands as it is')
})

t.test('streams that are not plain', async t => {
  for (const { name, payloads, events } of table<{ payloads: unknown[]; events: Event[] }>('streams')) {
    t.same(contentOf(decode('stream', payloads)), events, name)
  }
  const misnamed = {
    name: 'message_stop',
    data: '{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}',
  }
  const untyped = [
    { name: 'message_start', data: '{}' },
    { name: 'message_stop', data: '{}' },
  ]
  const events = decodeAll(wire.decoder('stream', target()), [misnamed, ...untyped])
  t.same(
    events.map(({ type }) => type),
    ['text', 'start', 'finish'],
    'S7 the type of the payload wins over its name',
  )
})

t.test('words beside an answer that comes by tool are none of it', async t => {
  const schema = { type: 'object' }
  const asked: ChatRequest = {
    model: 'm',
    messages: [],
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
  }
  const told = (decoder: Decoder, blocks: object[]) => {
    const payload = JSON.stringify({ type: 'message', content: blocks, stop_reason: 'end_turn' })
    const events = decodeAll(decoder, [payload])
    return events.flatMap(event => (event.type === 'text' ? [event.text] : event.type === 'tool' ? ['call'] : []))
  }
  const said = (...blocks: object[]) =>
    told(wire.decoder('unary', target({ mapping: { supports: new Set() } }), asked), blocks)
  const text = (text: string) => ({ type: 'text', text })
  const answer = { type: 'tool_use', id: 't', name: 'json_answer', input: { a: 1 } }
  t.strictSame(said(text('Sure:'), answer, text('Done.')), ['{"a":1}'])
  t.strictSame(said(text('I do not know.')), ['I do not know.'], 'unless there is no such answer')
  t.strictSame(said(text('I look.'), { ...answer, name: 'f' }), ['I look.', 'call', 'call'], 'or another call')

  const able = target({ mapping: { supports: new Set(['structured_outputs']) } })
  const vertex = plugin.wires[1]!.decoder('unary', able, asked)
  t.strictSame(told(vertex, [text('Sure:'), answer]), ['{"a":1}'], 'Vertex has no other form of it')
  const native = wire.native!.decoder!('unary', target({ mapping: { supports: new Set() } }))
  t.strictSame(told(native, [text('{"a":1}')]), ['{"a":1}'], 'and a body of the client offers no tool')
})

t.test('C15 a call without an id gets one, and keeps its name', async t => {
  const content = [undefined, '', 7].map(id => ({ type: 'tool_use', id, name: 'f', input: {} }))
  const events = decode('unary', [{ type: 'message', content, stop_reason: 'tool_use' }])
  const begun = events.flatMap(event => (event.type === 'tool' && event.name === 'f' ? [event.id ?? ''] : []))
  t.equal(new Set(begun).size, 3)
  for (const id of begun) t.match(id, /^call_[0-9a-f]{32}$/)
})

t.test('a failure becomes one error event', async t => {
  for (const { name, payloads, error } of table<{ payloads: unknown[]; error: Json }>('failures')) {
    const found = errorsOf(decode('stream', payloads))
    t.match(found, [error], name)
    t.equal(found.length, 1, `${name}: reported once`)
  }
  const other = decode('unary', [{ object: 'list' }])
  t.match(errorsOf(other), [{ code: 'upstream_invalid_response' }], 'a whole answer must be a message')
})

t.test('refusals with a status say whose fault they are', async t => {
  checkErrors(t, wired)
})

t.test('a limit that only the wire requires is said of the request', async t => {
  const { body, output } = encode({})
  t.equal(output?.limit, body.max_tokens)
  t.equal(encode({ max_tokens: 9 }).output, undefined)
  t.equal(encode({}, offer({ maxOutput: 99 })).output, undefined)
})

t.test('C35 usage includes what the cache gave and took, streamed and whole alike', async t => {
  const cache_creation = { ephemeral_5m_input_tokens: 3000, ephemeral_1h_input_tokens: 68 }
  const early = { input_tokens: 51, cache_read_input_tokens: 7, cache_creation_input_tokens: 3068, cache_creation }
  const late = {
    input_tokens: 0,
    cache_read_input_tokens: 9,
    output_tokens: 169,
    output_tokens_details: { thinking_tokens: 139 },
    server_tool_use: { web_search_requests: 2 },
  }
  const streamed = decode('stream', [
    { type: 'message_start', message: { id: 'm', usage: { ...early, output_tokens: 1 } } },
    { type: 'message_delta', delta: {}, usage: { input_tokens: null, cache_creation: null } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: late },
    { type: 'message_stop' },
  ])
  const whole = (usage: Json) =>
    usageOf(decode('unary', [{ type: 'message', content: [], stop_reason: 'end_turn', usage }]))
  t.same(usageOf(streamed), {
    prompt: 9 + 3068,
    input_cache_read: 9,
    input_cache_write: 3000,
    input_cache_write_1h: 68,
    completion: 169,
    internal_reasoning: 139,
    web_search: 2,
  })
  t.same(whole({ ...early, ...late }), usageOf(streamed))

  const unsplit = whole({ input_tokens: 1, cache_creation_input_tokens: 4, output_tokens: 2 })
  t.same(unsplit, { prompt: 5, input_cache_write: 4, completion: 2 }, 'writes without a split last five minutes')
  const iterations = [
    { type: 'compaction', input_tokens: 10, output_tokens: 3 },
    { type: 'message', input_tokens: 4, output_tokens: 2 },
    { type: 'advisor_message', input_tokens: 99, output_tokens: 99 },
  ]
  const totals = { input_tokens: 4, output_tokens: 2 }
  t.same(whole({ ...totals, iterations }), { prompt: 14, completion: 5 }, 'a compaction counts')
  for (const odd of [{}, { input_tokens: null, output_tokens: '2' }, { input_tokens: -4, output_tokens: -2 }]) {
    const [compaction] = iterations
    const uncounted = whole({ ...totals, iterations: [compaction, { type: 'message', ...odd }] })
    t.same(uncounted, { prompt: 14, completion: 5 }, 'a part without counts takes nothing from the totals')
  }
  const cached = [
    {
      type: 'compaction',
      input_tokens: 10,
      output_tokens: 3,
      cache_read_input_tokens: 5000,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
    },
    { type: 'message', input_tokens: 4, output_tokens: 2 },
  ]
  const given = { ...totals, cache_read_input_tokens: 7, cache_creation_input_tokens: 0 }
  const all = { input_cache_read: 5007, input_cache_write: 100, input_cache_write_1h: 200, completion: 5 }
  t.same(whole({ ...given, iterations: cached }), { prompt: 14 + 5007 + 300, ...all }, 'with what the cache gave it')
  t.same(
    whole({ ...given, cache_read_input_tokens: null, iterations: cached }),
    { prompt: 14 + 5000 + 300, ...all, input_cache_read: 5000 },
    'also where there is no total',
  )
  const fallback = [...iterations, { type: 'fallback_message' }]
  t.same(whole({ ...totals, iterations: fallback }), { prompt: 4, completion: 2 }, 'beside a fallback the totals hold')
})

t.test('what tools of the provider return counts as it comes, since reports count it at the end alone', async t => {
  const results = [
    { type: 'web_search_tool_result', tool_use_id: 's1', content: [{ type: 'web_search_result', url: 'u' }] },
    { type: 'web_search_tool_result', tool_use_id: 's2', content: { type: 'web_search_tool_result_error' } },
    {
      type: 'web_fetch_tool_result',
      tool_use_id: 'f1',
      content: { type: 'web_fetch_result', content: '漢'.repeat(100) },
    },
  ]
  const payloads = [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 9, output_tokens: 1 } } },
    ...results.map((content_block, index) => ({ type: 'content_block_start', index, content_block })),
  ]
  const reported = decode('stream', payloads).filter(event => event.type === 'usage')
  const usage = { prompt: 9, completion: 1 }
  const counted = { ...usage, web_search: 1 }
  t.strictSame(reported, [
    { type: 'usage', usage },
    ...payloads
      .slice(1)
      .map(payload => ({ type: 'usage', usage: counted, read: Buffer.byteLength(JSON.stringify(payload)) })),
  ])
  const ex = exchange({ request: { model: 'm', messages: [], stream: true }, target: target() })
  const [begin, ...read] = payloads
  const words = { type: 'content_block_delta', index: 9, delta: { type: 'text_delta', text: 'x'.repeat(40_000) } }
  ex.observe(decode('stream', [begin!, words, ...read]))
  t.equal(ex.meter.tokens, 10_000, 'what was written before them, no report has named')
  const whole = {
    type: 'message',
    content: results,
    stop_reason: 'end_turn',
    usage: { input_tokens: 9, output_tokens: 1 },
  }
  t.strictSame(
    decode('unary', [whole]).filter(event => event.type === 'usage'),
    [{ type: 'usage', usage }],
  )
})

t.test('any history is refused by name, or pairs every call with one result', async t => {
  /** The first rule of the wire that `turns` break. */
  const fault = (turns: Turn[]): string | undefined => {
    const used: unknown[] = []
    let results = 0
    for (const [i, { role, content }] of turns.entries()) {
      const ids = content.flatMap(block => (block.type === 'tool_use' ? [block.id] : []))
      const opening = (turns[i + 1]?.content ?? []).slice(0, ids.length).map(block => block.tool_use_id)
      if (role !== (i % 2 ? 'assistant' : 'user')) return 'roles must alternate'
      if (content.some(block => block.type === 'text' && !String(block.text).trim())) return 'text must be visible'
      if (JSON.stringify(opening) !== JSON.stringify(ids)) return 'results must open the next turn'
      if (!ids.every(name => /^[a-zA-Z0-9_-]+$/.test(String(name)))) return 'ids must be in the alphabet'
      results += content.filter(block => block.type === 'tool_result').length
      used.push(...ids)
    }
    if (new Set(used).size !== used.length) return 'ids must be unique'
    return results === used.length ? undefined : 'results must be as many as calls'
  }
  const histories = anyMessages(['a', 'b', 'a|b', 'a_b', 'a_b_2', '', 'é'], ['', ' ', 'x', 'y\n', '\ud83d'])
  checkHistories(t, histories, turnsOf, turns => assert.equal(fault(turns), undefined))
})

t.test('an answer whose schema the wire would refuse, or close to nothing, is asked for in words', t => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
  const many = (count: number, member: Json = { type: 'string' }, required = false) => {
    const names = Array.from({ length: count }, (_, i) => `p${i}`)
    const properties = Object.fromEntries(names.map(name => [name, { ...member }]))
    return { type: 'object', properties, ...(required && { required: names }) }
  }
  const told: [says: string, schema: Json, strict?: boolean][] = [
    ['a map', { type: 'object', properties: { m: { type: 'object', additionalProperties: { type: 'string' } } } }],
    ['any object in a list', { type: 'array', items: { type: 'object' } }],
    ['a reference to a map', { $ref: '#/$defs/m', $defs: { m: { type: 'object', additionalProperties: {} } } }],
    ['a schema within itself', { $ref: '#/$defs/node', $defs: { node } }, true],
    ['too many optional properties', many(25), true],
    ['too many unions', many(17, { type: ['string', 'null'] }, true), true],
    ['a root within itself', { type: 'object', properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } } }],
  ]
  const held: typeof told = [
    ['members', { type: 'object', properties: { a: { type: 'string' } } }],
    ['no members', { type: 'object', properties: {}, additionalProperties: false }],
    ['a definition twice', { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }], $defs: { a: { type: 'string' } } }],
    ['as many optional properties as it takes', many(24)],
    ['as many unions', many(16, { anyOf: [{ type: 'string' }, { type: 'null' }] }, true)],
    ['what is strict', { type: 'object', properties: { a: { type: 'object' } } }, true],
  ]
  const able = { mapping: { supports: new Set(['structured_outputs'] as const) } }
  const sent = (schema: Json, strict = false) =>
    encode({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict } } }, target(able)).body
  for (const [says, schema, strict] of told) {
    const { system, output_config: config } = sent(schema, strict) as Json
    t.match(system, JSON.stringify(schema), says)
    t.equal(config, undefined, says)
  }
  for (const [says, schema, strict] of held) t.match(sent(schema, strict), { output_config: { format: {} } }, says)
  const tool = { type: 'function', function: { name: 'f', strict: true, parameters: told[3]![1] } }
  t.notMatch(JSON.stringify(encode({ tools: [tool] }, target(able)).body), '"strict"')
  t.end()
})

t.test('parameters whose names the wire refuses have others there, and their own in calls', async t => {
  const text = { type: 'string' }
  const members = { $filter: text, 'filter[id]': text, filter_id_: text, ok: text, ['x'.repeat(65)]: text }
  const parameters = { type: 'object', properties: members, required: ['$filter', 'ok'] }
  const tools = [{ type: 'function' as const, function: { name: 'f.g', parameters } }]
  const { body } = encode({ tools })
  const wireNames = ['_filter', 'filter_id__2', 'filter_id_', 'ok', 'x'.repeat(64)]
  t.strictSame((body.tools as Json[])[0]!.input_schema, {
    type: 'object',
    properties: Object.fromEntries(wireNames.map(name => [name, text])),
    required: ['_filter', 'ok'],
  })
  const asked = { model: 'm', messages: [], tools } as ChatRequest
  const inner = { _filter: '_filter', list: [{ filter_id__2: 1 }] }
  const sent = JSON.stringify(
    { _filter: 'a "_filter": \\', filter_id__2: inner, ok: 12, ['x'.repeat(64)]: [] },
    null,
    1,
  )
  const expected = { $filter: 'a "_filter": \\', 'filter[id]': inner, ok: 12, ['x'.repeat(65)]: [] }
  const called = (pieces: readonly string[], mode: 'stream' | 'unary', blocks?: object[]) => {
    const start = { type: 'tool_use', id: 't', name: 'f_u002e_g', input: {} }
    const deltas = pieces.map(json => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: json },
    }))
    const payloads = blocks
      ? [{ type: 'message', content: blocks, stop_reason: 'tool_use' }]
      : [{ type: 'content_block_start', index: 0, content_block: start }, ...deltas]
    const decoder = plugin.wires[0]!.decoder(mode, target(), asked)
    const events = decodeAll(
      decoder,
      payloads.map(payload => JSON.stringify(payload)),
    )
    return events.flatMap(event => (event.type === 'tool' ? [event.args ?? ''] : [])).join('')
  }
  t.strictSame(JSON.parse(called([sent], 'stream')), expected)
  t.strictSame(JSON.parse(called([...sent], 'stream')), expected, 'cut anywhere')
  const whole = { type: 'tool_use', id: 't', name: 'f_u002e_g', input: JSON.parse(sent) as Json }
  t.strictSame(JSON.parse(called([], 'unary', [whole])), expected)
  t.strictSame(JSON.parse(called([], 'unary', [{ ...whole, name: 'g' }])), JSON.parse(sent), 'of another tool')
})

t.test('words of a schema that are no text are among its rules, or left out', t => {
  const no = JSON.parse('{"toString":null}') as object
  const schema = { type: 'object', properties: { a: { type: 'string', format: no }, b: { description: no } } }
  const a = { type: 'string', description: '(format: {"toString":null})' }
  t.strictSame(strictSchema(schema), { type: 'object', properties: { a, b: {} }, additionalProperties: false })
  t.end()
})
