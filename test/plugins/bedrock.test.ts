/**
 * The wire `bedrock.converse`. Its tables are `test/golden/bedrock`: requests with the body that they become, a stream
 * with its events and the same answer whole, and one `*.table.json` per kind of edge case. Ids such as R3 name known
 * edge cases. A frame is `[name, payload]`. What is sent must also pass the rules of the simulated provider.
 */
import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/bedrock.ts'
import { fromWireName, shortName } from '../../plugins/shared/tool-name.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import type { Frame, WireRequest } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { Fold } from '../../src/wire/fold.ts'
import { base, flat } from '../core/prices.ts'
import { cpuMs } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { anyCalls, checkErrors, checkParameters, checkPrefix, checkRefusals } from './golden-checks.ts'
import { call, contentOf, encodeWith, errorsOf, golden, hi, type Json, result, textOf, usageOf } from './golden-kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

type Named = [name: string | null, payload: unknown]
interface Turn {
  role: string
  content: Json[]
}

const wire = plugin.wires[0]!
const { read: textIn, names, table } = golden('bedrock')
const read = (name: string) => JSON.parse(textIn(name))
const helper = (name: string) => import(new URL(`../helpers/upstream/${name}.mjs`, import.meta.url).href)
type Rules = { check(headers: Json, body: unknown, keys: string[], url: URL): void }
const rules: Promise<Rules> = helper('bedrock-rules')
const stream: Promise<{ message(headers: Json, payload: unknown): Buffer }> = helper('event-stream')

/** A target whose mapping is written as JSON. */
const offer = (given: Json = {}, provider: Json = {}): Target => {
  const { supports, parameters, model, ...rest } = given as { supports?: never[]; parameters?: string[]; model?: Json }
  const mapping = { ...rest, supports: new Set(supports), parameters: parameters && new Set(parameters) }
  return target({ mapping, provider, secret: 'secret-0123456789', ...(model && { model }) })
}
const CLAUDE = { externalId: 'us.anthropic.claude-haiku-4-5-20251001-v1:0', supports: ['tools', 'prompt_cache'] }
const encode = (request: Json, to = offer(), streamed = false) => encodeWith(wire, request, to, streamed)
const wired = { wire, table, encode }
const turnsOf = (messages: Json[], to?: Target) => encode({ messages: [...messages] }, to).body.messages as Turn[]

/** What the simulated provider would refuse of a request; undefined when it takes it. */
const refusalOf = async ({ path, body }: WireRequest): Promise<string | undefined> => {
  const { check } = await rules
  const headers = { authorization: 'Bearer k', 'content-type': 'application/json' }
  try {
    check(headers, JSON.parse(JSON.stringify(body)), [], new URL(`http://upstream${path}`))
    return undefined
  } catch (thrown) {
    return String(thrown)
  }
}

const frameOf = ([name, payload]: Named): Frame => ({
  data: textOf(payload),
  ...(name !== null && { name }),
})
const decode = (frames: readonly Frame[], to = offer(), mode: 'stream' | 'unary' = 'stream'): Event[] => {
  const decoder = wire.decoder(mode, to)
  return [...frames.flatMap(frame => decoder.frame(frame)), ...decoder.end()]
}
const answerOf = (events: Event[]) => {
  const fold = new Fold()
  fold.add(events)
  return fold.choices[0]!
}

t.test('golden requests are encoded without touching them, and the provider takes them', async t => {
  for (const name of names('.request.json')) {
    const { mapping, request } = deepFreeze(read(`${name}.request.json`))
    const sent = wire.encode(request, offer(mapping), request.stream === true)
    const { output: _, cacheMark: _mark, body, ...rest } = sent
    t.same({ ...rest, body: JSON.parse(JSON.stringify(body)) }, read(`${name}.body.json`), name)
    t.equal(await refusalOf(sent), undefined, name)
  }
})

t.test('a golden stream gives the expected events, and the same answer whole', async t => {
  const to = offer(CLAUDE)
  const frames = (read('thinking-tool.frames.json') as Named[]).map(frameOf)
  const expected: Event[] = read('thinking-tool.events.json')
  const events = decode(frames, to)
  t.same(events, expected)
  const silent = expected.filter(({ type }) => type !== 'usage' && type !== 'tier')
  t.same(decode(frames.slice(0, -1), to), silent, 'S10 it ends with its bytes')
  const whole = decode([frameOf([null, read('thinking-tool.whole.json')])], to, 'unary')
  t.same(answerOf(whole), answerOf(events))
  t.same(usageOf(whole), usageOf(events))
  t.same(whole.slice(-3), events.slice(-3))
})

t.test('a stream gives the same events wherever its bytes are cut', async t => {
  const { message } = await stream
  const named: [string, unknown][] = read('thinking-tool.frames.json')
  const bytes = Buffer.concat(
    named.map(([name, payload]) => message({ ':event-type': name, ':message-type': 'event' }, payload)),
  )
  const events = (cuts: readonly number[]) => {
    const { framing, mode } = framingFor('application/vnd.amazon.eventstream', true)
    const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length]
    const frames = edges.slice(1).flatMap((end, i) => framing.push(bytes.subarray(edges[i], end)))
    return JSON.stringify(decode([...frames, ...framing.end()], offer(CLAUDE), mode))
  }
  const expected = JSON.stringify(read('thinking-tool.events.json'))
  for (let at = 0; at <= bytes.length; at++) if (events([at]) !== expected) t.fail(`cut at ${at}`)
  const cuts = fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 40 })
  fc.assert(
    fc.property(cuts, list => events(list) === expected),
    { numRuns: 200, seed: 1 },
  )
  t.equal(events(Array.from(bytes.keys())), expected, 'S15 byte by byte')
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, wired, offer)
})

t.test('histories become alternating turns', async t => {
  type Row = { mapping?: Json; messages: Json[]; turns: Turn[] }
  for (const { name, mapping, messages, turns } of table<Row>('histories')) {
    t.strictSame(turnsOf(messages, offer(mapping)), turns, name)
  }
})

t.test('parameters are mapped, clamped or dropped', async t => {
  const taken = async (sent: WireRequest, name: string) => t.equal(await refusalOf(sent), undefined, name)
  await checkParameters(t, wired, taken, offer)
})

t.test('a request says how its answer is bounded where the wire does not carry that', async t => {
  const nova = offer({
    externalId: 'amazon.nova-2-lite-v1:0',
    supports: ['reasoning'],
    reasoningEfforts: ['low', 'high'],
  })
  const llama = offer({ externalId: 'us.meta.llama4-scout-17b-instruct-v1:0', supports: ['tools'] })
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const rows: [says: string, to: Target, request: Json, stream: boolean, output: WireRequest['output']][] = [
    ['a limit that it carries', nova, { max_tokens: 1, reasoning_effort: 'low' }, true, undefined],
    ['an effort without a limit', nova, { max_tokens: 1, reasoning_effort: 'high' }, true, { limit: Infinity }],
    ['the same, whole', nova, { reasoning_effort: 'high' }, false, { limit: Infinity }],
    ['a stream without tools', llama, {}, true, undefined],
    ['a stream with tools', llama, { tools }, true, { whole: true }],
    ['a whole answer with tools', llama, { tools }, false, undefined],
  ]
  for (const [says, to, request, stream, output] of rows) {
    const sent = encode(request, to, stream)
    t.strictSame(sent.output, output, says)
    const { maxTokens } = (sent.body.inferenceConfig ?? {}) as Json
    t.equal(maxTokens, output?.limit ? undefined : request.max_tokens, says)
    t.equal(sent.path.endsWith('-stream'), stream && !output?.whole, says)
  }
})

t.test('a model id is one segment of the address', async t => {
  const path = (externalId: string, streamed: boolean) => encode({}, offer({ externalId }), streamed).path
  t.equal(path('eu.amazon.nova-pro-v1:0', false), '/model/eu.amazon.nova-pro-v1%3A0/converse')
  const arn = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.x'
  const spelt = 'arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.anthropic.x'
  t.equal(path(arn, true), `/model/${spelt}/converse-stream`)
})

t.test('a breakpoint ends the same bytes, each time and in a longer conversation', async t => {
  const mark = { type: 'ephemeral' }
  const messages: Json[] = [
    { role: 'system', content: [{ type: 'text', text: 'Long', cache_control: mark }] },
    { role: 'user', content: 'Go' },
    { role: 'assistant', tool_calls: [call('a|b', '{"z":1,"a":2}')] },
    { role: 'tool', tool_call_id: 'a|b', content: 'ok', tool_result_cache_control: mark },
  ]
  const later = [
    { role: 'assistant', content: 'Done' },
    { role: 'user', content: 'More' },
    { role: 'system', content: 'Now' },
  ]
  const tools = ['z', 'a'].map(name => ({ type: 'function', function: { name } }))
  const first = checkPrefix(t, later, (more, rest) => {
    const text = JSON.stringify(encode({ tools, messages: [...messages, ...more], ...rest }, offer(CLAUDE)).body)
    return text.slice(0, text.lastIndexOf('"cachePoint"'))
  })
  t.ok(first.includes('"ok"'))
})

t.test('an encoded request has the longest of its marks beside it', t => {
  const text = (ttl?: string) => ({
    type: 'text',
    text: 'a',
    cache_control: { type: 'ephemeral', ...(ttl && { ttl }) },
  })
  const tool = { type: 'function', function: { name: 'f' }, cache_control: { type: 'ephemeral', ttl: '1h' } }
  const nova = { externalId: 'amazon.nova-lite-v1:0', supports: ['tools', 'prompt_cache'] }
  const rows: [says: string, request: Json, mapping: Json, mark: string | undefined][] = [
    ['none', { messages: [hi] }, CLAUDE, undefined],
    ['five minutes', { messages: [{ role: 'user', content: [text()] }] }, CLAUDE, '5m'],
    ['an hour, and less', { messages: [{ role: 'user', content: [text('1h'), text()] }] }, CLAUDE, '1h'],
    ['of a tool', { messages: [hi], tools: [tool] }, CLAUDE, '1h'],
    ['a model that keeps nothing so long', { messages: [{ role: 'user', content: [text('1h')] }] }, nova, '5m'],
    [
      'a mapping without a price for an hour',
      { messages: [{ role: 'user', content: [text('1h')] }] },
      { ...CLAUDE, price: flat({ ...base, input_cache_write: '3.125' }) },
      '5m',
    ],
    ['a model without a cache', { messages: [{ role: 'user', content: [text('1h')] }] }, {}, undefined],
  ]
  for (const [says, request, mapping, mark] of rows) t.equal(encode(request, offer(mapping)).cacheMark, mark, says)
  t.end()
})

t.test('R19 tool names are spelt in the alphabet of the wire and read back', async t => {
  const parts = fc.array(fc.oneof(fc.constantFrom('_', 'u', '002e', 'a', '_u0', '.'), fc.string({ maxLength: 2 })), {
    maxLength: 8,
  })
  let spelt = 0
  fc.assert(
    fc.property(parts, pieces => {
      const name = pieces.join('')
      const wireName = shortName(name)
      if (fromWireName(wireName) === name) spelt += 1
      else if (!/_[0-9a-f]{8}$/.test(wireName)) return false
      return /^[a-zA-Z0-9_-]{0,64}$/.test(wireName)
    }),
    { numRuns: 1000, seed: 1 },
  )
  t.ok(spelt > 500, 'most names can be spelt')
})

t.test('R4 ids for Mistral are nine letters and digits, the same in every turn', async t => {
  const to = offer({ externalId: 'mistral.mistral-large-2407-v1:0' })
  const messages: Json[] = [hi]
  const seen: string[][] = []
  for (const id of ['call_1', 'call_1', 'abcdefghi', '605bb47c3', 'tooluse_é']) {
    messages.push({ role: 'assistant', tool_calls: [call(id)] }, { role: 'tool', tool_call_id: id, content: 'ok' })
    const blocks = turnsOf(messages, to).flatMap(turn => turn.content)
    const ids = blocks.flatMap(({ toolUse }) => (toolUse ? [String((toolUse as Json).toolUseId)] : []))
    t.ok(ids.every(name => /^[a-zA-Z0-9]{9}$/.test(name)) && new Set(ids).size === ids.length)
    t.same(ids.slice(0, -1), seen.at(-1) ?? [])
    seen.push(ids)
  }
  t.equal(seen.at(-1)![2], 'abcdefghi', 'an id of the right form stays')
})

t.test('Messages clients read which stop sequence has ended an answer', async t => {
  const endingOf = (stop: string[] | undefined) => {
    const input = { model: 'm', messages: [], ...(stop && { stop }) }
    const decoder = wire.decoder('stream', offer(), input)
    const frames = [
      { name: 'messageStop', data: '{"stopReason":"stop_sequence"}' },
      { name: 'metadata', data: '{"usage":{"inputTokens":1,"outputTokens":1}}' },
    ]
    const last = frames.flatMap(frame => decoder.frame(frame)).at(-1)
    return last?.type === 'finish' ? last.ending?.fields : last
  }
  t.strictSame(endingOf(['.']), { stop_reason: 'stop_sequence', stop_sequence: '.' })
  t.strictSame(endingOf(['.', '!']), { stop_reason: 'stop_sequence', stop_sequence: null }, 'one of several')
  t.equal(endingOf(undefined), undefined, 'a sequence of the model')
})

t.test('streams and whole answers that are not plain', async t => {
  for (const { name, frames, events } of table<{ frames: Named[]; events: Event[] }>('streams')) {
    t.same(contentOf(decode(frames.map(frameOf))), events, name)
  }
  for (const { name, payload, events } of table<{ payload: Json; events: Event[] }>('wholes')) {
    t.same(contentOf(decode([frameOf([null, payload])], offer(), 'unary')), events, name)
    t.same(contentOf(decode([frameOf([null, payload])])), events, `${name}: S19 also where a stream was expected`)
  }
})

t.test('a call of a tool that the request does not offer is dropped, and the turn ends', async t => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const called: Named[] = [
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hm' } }],
    ['contentBlockStart', { contentBlockIndex: 1, start: { toolUse: { toolUseId: 't', name: 'f' } } }],
    ['contentBlockDelta', { contentBlockIndex: 1, delta: { toolUse: { input: '{}' } } }],
    ['contentBlockStop', { contentBlockIndex: 1 }],
    ['messageStop', { stopReason: 'tool_use' }],
  ]
  const content = [{ text: 'Hm' }, { toolUse: { toolUseId: 't', name: 'f', input: {} } }]
  const whole: Named[] = [[null, { output: { message: { content } }, stopReason: 'tool_use' }]]
  for (const frames of [called, whole]) {
    const reasonOf = (request: Json) => {
      const input = {
        model: 'm',
        messages: [hi, { role: 'assistant', tool_calls: [call('t')] }, result('t')],
        ...request,
      }
      const decoder = wire.decoder('stream', offer(), input as ChatRequest)
      const events = [...frames.flatMap(frame => decoder.frame(frameOf(frame))), ...decoder.end()]
      const finish = events.find(event => event.type === 'finish')
      return [events.some(({ type }) => type === 'tool'), finish?.reason]
    }
    t.same(reasonOf({}), [false, 'stop'], 'a history alone names tools')
    t.same(reasonOf({ tools: [] }), [false, 'stop'])
    t.same(reasonOf({ tools: [{ type: 'web_search' }] }), [false, 'stop'])
    t.same(reasonOf({ tools, tool_choice: 'none' }), [false, 'stop'])
    t.same(reasonOf({ tools }), [true, 'tool_calls'])
  }
})

t.test('a failure becomes one error event, and ends the answer', async t => {
  for (const { name, frames, error } of table<{ frames: Named[]; error: Json }>('failures')) {
    const events = decode(frames.map(frameOf))
    t.match(errorsOf(events), [error], name)
    t.equal(errorsOf(events).length, 1, `${name}: reported once`)
    t.equal(events.at(-1)?.type, 'error', `${name}: nothing follows`)
  }
})

t.test('an error of white space takes no longer than another', async t => {
  const text = `x${' '.repeat(64_000)}y`
  for (const body of [{ message: text }, { Message: text }]) {
    const took = cpuMs(() => t.match(errorsOf(decode([frameOf([null, body])], offer(), 'unary')), [{ detail: /^x/ }]))
    t.ok(took < 500, `${Object.keys(body)}: ${took} ms of CPU`)
  }
})

t.test('refusals with a status say whose fault they are', async t => {
  checkErrors(t, wired, offer())
})

t.test('a limit that only a budget requires is said of the request', async t => {
  const model = { externalId: 'anthropic.claude-haiku-4-5-20251001-v1:0', supports: ['reasoning'] }
  const budget = { messages: [hi], reasoning: { max_tokens: 2000 } }
  const { body, output } = encode(budget, offer(model))
  t.equal(output?.limit, (body.inferenceConfig as Json).maxTokens)
  t.equal(encode({ ...budget, max_tokens: 9000 }, offer(model)).output, undefined)
  t.equal(encode(budget, offer({ ...model, maxOutput: 9000 })).output, undefined)
  t.equal(encode({ messages: [hi] }, offer(model)).output, undefined)
})

t.test('C35 usage includes what the cache gave and took', async t => {
  const usage = (report: Json) => usageOf(decode([frameOf(['metadata', { usage: report }])]))
  t.same(usage({ inputTokens: 5, outputTokens: 2 }), { prompt: 5, completion: 2 })
  t.same(
    usage({ inputTokens: 5, outputTokens: 2, cacheWriteInputTokens: 4, cacheReadInputTokenCount: 3 }),
    { prompt: 12, input_cache_read: 3, input_cache_write: 4, completion: 2 },
    'writes without a split last five minutes',
  )
  const cacheDetails = [{ ttl: '1h', inputTokens: 4 }, { ttl: '5m', inputTokens: 1 }, { ttl: '9h' }, null]
  t.same(
    usage({ inputTokens: 5, cacheDetails }),
    { prompt: 10, input_cache_write: 1, input_cache_write_1h: 4 },
    'a split without a total',
  )
  t.same(usage({ inputTokens: null, outputTokens: -1 }), {}, 'C4 null is absent')
  const searches = (read('streams.table.json') as { name: string; frames: Named[] }[]).find(({ name }) =>
    name.startsWith('a tool that the provider'),
  )
  t.same(usageOf(decode(searches!.frames.map(frameOf))), { web_search: 1 })
})

t.test('any history is refused by name, or taken by the provider', async t => {
  const id = fc.constantFrom('a', 'b', 'a|b', 'a_b', 'a_b_2', '', 'é', 'x'.repeat(70))
  const words = fc.constantFrom('', ' ', 'x', 'y\n', '\ud83d')
  const mark = fc.constantFrom({}, {}, {}, { cache_control: { type: 'ephemeral' } })
  const part = fc.tuple(words, mark).map(([text, marked]) => ({ type: 'text', text, ...marked }))
  const file = fc.constant({ type: 'file', file: { filename: 'a_b.txt', file_data: 'data:text/plain;base64,YQ==' } })
  const spoken = fc.oneof(words, fc.constant(null), fc.array(part, { maxLength: 3 }))
  const asked = fc.oneof(spoken, fc.array(fc.oneof(part, file), { maxLength: 3 }))
  const message = fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer', 'assistant'), content: spoken }),
    fc.record({ role: fc.constant('user'), content: asked }),
    fc.record({ role: fc.constant('assistant'), content: spoken, tool_calls: anyCalls(id) }),
    fc.record({ role: fc.constant('tool'), content: asked, tool_call_id: id }),
  )
  const offers = [CLAUDE, { externalId: 'mistral.m' }, { ...CLAUDE, externalId: 'us.amazon.nova-pro-v1:0' }]
  const request = fc.record({
    messages: fc.array(message, { minLength: 1, maxLength: 8 }),
    tools: fc.constantFrom(null, [{ type: 'function', function: { name: 'g' } }]),
    tool_choice: fc.constantFrom('auto', 'none', 'required', null),
    parallel_tool_calls: fc.constantFrom(false, null),
  })
  const tried = runs(1000)
  let accepted = 0
  const property = fc.asyncProperty(request, fc.constantFrom(...offers), async (given, mapping) => {
    let sent: WireRequest
    try {
      sent = encode(given, offer(mapping))
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      return /^messages\[\d\]\.tool_call_id$|^cache_control$/.test(String(thrown.param))
    }
    accepted += 1
    const refusal = await refusalOf(sent)
    if (refusal) throw new Error(refusal)
    return true
  })
  await fc.assert(property, { numRuns: tried, seed: 1 })
  t.ok(accepted > 0.3 * tried, 'many histories are valid')
})

t.test('three turns with the provider: signatures come back byte for byte, and to it alone', async t => {
  const upstream = await startUpstream(t, { key: 'k' })
  const to = offer({ ...CLAUDE, supports: [...CLAUDE.supports, 'reasoning'] })
  const send = async ({ path, body }: WireRequest, key = 'k') =>
    fetch(upstream.url('a') + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    })
  const ask = async (request: Json, streamed: boolean): Promise<Event[]> => {
    const response = await send(encode(request, to, streamed))
    const type = response.headers.get('content-type') ?? undefined
    t.equal(response.status, 200)
    const { framing, mode } = framingFor(type, streamed)
    return decode([...framing.push(Buffer.from(await response.arrayBuffer())), ...framing.end()], to, mode)
  }
  const usage = { prompt: 90, completion: 9, cached: 40, written: 30, written1h: 10, reasoning: 0 }
  await upstream.script('a', [
    {
      reasoning: ['Think 🙂 ', 'more'],
      text: 'Well',
      toolCalls: [{ name: 'f', args: { a: 1 } }, { name: 'f' }],
      usage,
    },
  ])
  const messages: Json[] = [hi]
  const request = { tools: [{ type: 'function', function: { name: 'f' } }], reasoning_effort: 'low' }
  const replayed: unknown[] = []
  for (let turn = 0; turn < 3; turn++) {
    const events = await ask({ ...request, messages: [...messages] }, turn % 2 === 0)
    t.same(usageOf(events), {
      prompt: 90,
      input_cache_read: 40,
      input_cache_write: 20,
      input_cache_write_1h: 10,
      completion: 9,
    })
    const { text, details, tools, finish } = answerOf(events)
    t.same([text, finish, tools.map(({ args }) => args)], ['Well', 'tool_calls', ['{"a":1}', '{}']])
    const tool_calls = tools.map(({ id, args }) => call(id, args))
    messages.push({ role: 'assistant', content: text, reasoning_details: details, tool_calls })
    for (const { id } of tool_calls) messages.push({ role: 'tool', tool_call_id: id, content: 'ok' })
    const sent = encode({ ...request, messages: [...messages] }, to).body.messages as Turn[]
    const blocks = sent.flatMap(({ content }) => content)
    replayed.push(blocks.filter(block => 'reasoningContent' in block))
    t.equal((replayed[turn] as unknown[]).length, turn + 1)
  }
  t.same(
    replayed[2],
    [0, 1, 2].flatMap(() => replayed[0]),
    'what was signed alike is sent alike',
  )
  const elsewhere = turnsOf(messages, offer(CLAUDE, { id: 'other' }))
  t.notMatch(JSON.stringify(elsewhere), /reasoningContent|Think/)
  const forged = structuredClone(encode({ ...request, messages }, to))
  const [block] = (forged.body.messages as Turn[])[1]!.content as { reasoningContent: { reasoningText: Json } }[]
  block!.reasoningContent.reasoningText.text = 'forged'
  t.equal((await send(forged)).status, 400, 'a forged signature is refused')

  const denied = await send(encode({}, to), 'wrong')
  t.match(wire.error(denied.status, await denied.text(), to), { status: 502, code: 'upstream_credential' })
  const failure = { __type: 'ServiceUnavailableException', message: 'Later' }
  await upstream.script('a', [{ status: 429 }, { fault: 'error-event', body: failure, afterChunks: 2 }])
  const throttled = await send(encode({}, to))
  t.match(wire.error(throttled.status, await throttled.text(), to), { status: 503, code: 'upstream_rate_limited' })
  const broken = await ask({}, true)
  t.match(errorsOf(broken), [{ status: 503, code: 'upstream_overloaded' }])
  t.equal(answerOf(broken).text, 'echo', 'what came before it stays')
})
