/** What an answer may hold, on every wire: one that holds more is found in linear time, and charged by what it reports. */

import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Event } from '../../src/core/event.ts'
import type { Translator } from '../../src/core/translator.ts'
import { chat as chatEndpoint, responses as responsesEndpoint } from '../../src/endpoints/inference.ts'
import type { Json } from '../../src/json/json.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { promptFanOut } from '../../src/operations/chat/index.ts'
import { dispatch } from '../../src/upstream/dispatch.ts'
import type { Transport } from '../../src/upstream/transport.ts'
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts'
import { upstreamErrorOf } from '../../src/wire/upstream-error.ts'
import { exchange } from '../core/kit.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'

type Body = string | readonly string[]

const MIB = 1024 * 1024
const budgetOf = (bytes: number) => new MemoryBudget(bytes, { memory: () => 0 })

/** As a socket reads them. */
const read = (bytes: Buffer) => many(Math.ceil(bytes.length / READ), at => bytes.subarray(at * READ, (at + 1) * READ))
const READ = 64 * 1024

/** A provider that answers with `body`: a text is a whole answer, a list the data of events. */
function answering(body: Body): Transport {
  const isWhole = typeof body === 'string'
  const chunks = (isWhole ? [body] : body.map(data => `data: ${data}\n\n`)).flatMap(text => read(Buffer.from(text)))
  const incoming = {
    status: 200,
    header: name => (name === 'content-type' ? (isWhole ? 'application/json' : 'text/event-stream') : undefined),
    async take() {
      const chunk = chunks.shift()
      return chunk && [chunk]
    },
    committed() {},
    expectEnd() {},
    destroy() {},
    release() {},
  } satisfies Partial<UpstreamResponse> as Partial<UpstreamResponse> as UpstreamResponse
  return { send: async () => incoming } satisfies Pick<Transport, 'send'> as Pick<Transport, 'send'> as Transport
}

interface Outcome {
  readonly events: readonly Event[]
  /** Tokens of the answer that are charged where it failed. */
  readonly used?: number
  /** Thrown before anything was told, so that another provider can answer, or told as the last event. */
  readonly thrown?: GatewayError
}

async function outcome(
  wire: Translator,
  body: Body,
  stream = typeof body !== 'string',
  memory = budgetOf(1024 * MIB),
  endpoint: Endpoint = chatEndpoint,
  more: Partial<ChatRequest> = {},
) {
  const ex = exchange({
    request: { model: 'm', messages: [], stream, ...more },
    target: target({ translator: wire }),
    endpoint,
  })
  ex.outbound.request = { path: '/', body: {} }
  const events: Event[] = []
  try {
    const reply = await dispatch(answering(body), memory)(ex)
    for await (const batch of reply.events) for (const event of batch) events.push(event)
    return { events } satisfies Outcome
  } catch (thrown) {
    ex.meter.complete(true)
    return { events, thrown: thrown as GatewayError, used: ex.usage.completion ?? 0 } satisfies Outcome
  }
}

/** Citations have places in the text of an answer that was searched for. */
const SEARCHING: Partial<ChatRequest> = { web_search: true }
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

interface Form {
  readonly wire: Translator
  /** A whole answer of these parts. */
  readonly whole: (parts: readonly unknown[]) => Json
  readonly text: (at: number) => unknown
  readonly call: (at: number) => unknown
  /** Blocks that are told apart, where the wire has them. */
  readonly thought?: (at: number) => unknown
}

/** Half a million values and entries, as many as a list may have. */
const ZEROS = `${'0,'.repeat(5e5 - 1)}0`
/** A million values with the rest of an answer. */
const MANY = ZEROS.slice(2000)
const OBJECTS = `${'{},'.repeat(runs(10e6))}{}`

const wireOf = (plugin: { readonly wires: readonly unknown[] }) => plugin.wires[0] as Translator
const called = (at: number) => ({ id: `c${at}`, type: 'function', function: { name: 'f', arguments: '{}' } })
const message = (parts: readonly unknown[]): Json => {
  const list = parts as readonly Json[]
  return {
    content: list.filter(part => !('id' in part || 'index' in part)),
    tool_calls: list.filter(part => 'id' in part),
    reasoning_details: list.filter(part => 'index' in part),
  }
}
const chat = (parts: readonly unknown[]) => ({ choices: [{ message: message(parts), finish_reason: 'stop' }] })
const text = (at: number) => ({ type: 'text', text: `t${at}` })
const forms: readonly Form[] = [
  {
    wire: wireOf(openai),
    whole: chat,
    text,
    call: called,
    thought: index => ({ type: 'reasoning.text', text: 'a', index }),
  },
  {
    wire: wireOf(mistral),
    whole: chat,
    text,
    call: called,
    thought: at => ({ type: 'thinking', thinking: [{ type: 'text', text: 'a' }], signature: `s${at}` }),
  },
  {
    wire: wireOf(anthropic),
    whole: content => ({ type: 'message', content, stop_reason: 'end_turn' }),
    text,
    call: at => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} }),
    thought: () => ({ type: 'thinking', thinking: 'a', signature: 's' }),
  },
  {
    wire: wireOf(bedrock),
    whole: content => ({ output: { message: { content } }, stopReason: 'end_turn', usage: { inputTokens: 1 } }),
    text: at => ({ text: `t${at}` }),
    call: at => ({ toolUse: { toolUseId: `c${at}`, name: 'f', input: {} } }),
  },
  {
    wire: wireOf(cohere),
    whole: parts => ({ message: message(parts), finish_reason: 'COMPLETE' }),
    text,
    call: called,
  },
  {
    wire: wireOf(gemini),
    whole: parts => ({ candidates: [{ content: { parts }, finishReason: 'STOP' }] }),
    text: at => ({ text: `t${at}` }),
    call: () => ({ functionCall: { name: 'f', args: {} } }),
  },
  {
    wire: wireOf(responses),
    whole: output => ({ object: 'response', status: 'completed', output }),
    text: at => ({ type: 'message', content: [{ type: 'output_text', text: `t${at}` }] }),
    call: at => ({ type: 'function_call', call_id: `c${at}`, name: 'f', arguments: '{}' }),
    thought: () => ({ type: 'reasoning', summary: [{ text: 'a' }], encrypted_content: 's' }),
  },
]
const counted = (events: readonly Event[], type: Event['type']) => events.filter(event => event.type === type).length
const failure = (message: RegExp) => ({ code: 'upstream_invalid_response', failover: true, message })
/** Of its size, which the model has written: its provider is paid, and no other one is tried. */
const written = (message: RegExp) => ({ ...failure(message), failover: false, billed: true })

for (const { wire, whole, text, call, thought } of forms) {
  t.test(
    `${wire.wire}: an answer beyond a bound is charged where its caller may have caused it, and one within it passes`,
    async t => {
      const said = JSON.stringify(whole([text(0)])).slice(0, -1)
      const wide = (values: string) => `${said},"extra":[${values}]}`
      const deep = (levels: number) => `${said},"extra":${nested(levels)}}`
      const refused: [says: string, body: string, expected: object][] = [
        ['129 levels', deep(128), failure(/nests deeper than 128 levels/)],
        ['300,000 levels', deep(300_000), failure(/nests deeper than 128 levels/)],
        ['500,000 values and more', wide(ZEROS), written(/more than 500,000 JSON values/)],
        ['megabytes of objects', wide(OBJECTS), written(/JSON values/)],
        ['1,001 calls', JSON.stringify(whole(many(1001, call))), written(/more than 1,000 tool calls/)],
        ['20,000 calls', JSON.stringify(whole(many(20_000, call))), written(/more than/)],
        ['50,000 parts', JSON.stringify(whole(many(50_000, text))), written(/more than 10,000 entries/)],
      ]
      const thoughts = thought && ((count: number) => JSON.stringify(whole([...many(count, thought), text(0)])))
      if (thoughts) refused.push(['1,001 blocks', thoughts(1001), written(/more than 1,000 blocks of reasoning/)])
      for (const [says, body, expected] of refused) {
        t.match((await outcome(wire, body)).thrown, expected, says)
        // The same in a stream that was wanted: nothing was told, and another provider can still answer.
        t.match((await outcome(wire, [body], true)).thrown, expected, `${says}, as an event`)
      }
      // What tools are called with is what the caller has its model write, be it text or an object in the answer.
      const tools: ChatRequest['tools'] = [{ type: 'function', function: { name: 'f' } }]
      for (const stream of [false, true]) {
        const body = stream ? [deep(128)] : deep(128)
        const { thrown, used } = await outcome(wire, body, stream, undefined, undefined, { tools })
        t.match(thrown, written(/nests deeper than 128 levels/), 'where tools may be called')
        t.ok(used! >= deep(128).length / 4, 'it is charged as it came', { used })
      }
      t.equal(counted((await outcome(wire, deep(127))).events, 'text'), 1, '128 levels')
      t.equal(counted((await outcome(wire, wide(MANY))).events, 'text'), 1, 'many values')
      const calls = await outcome(wire, JSON.stringify(whole(many(1000, call))))
      t.equal(calls.events.filter(event => event.type === 'tool' && event.id !== undefined).length, 1000)
      if (thoughts) t.equal(counted((await outcome(wire, thoughts(1000))).events, 'finish'), 1, '1,000 blocks')
      t.equal(
        counted((await outcome(wire, JSON.stringify(whole(many(9999, text))))).events, 'finish'),
        1,
        '9,999 parts',
      )
    },
  )
}

const { wire: chatWire } = forms[0]!
const { wire: messages } = forms[2]!

t.test('what is no JSON, and a stream that says nothing, is a failure of its provider', async t => {
  const free = { failover: true, billed: false }
  for (const [says, body, message] of [
    ['garbage', 'x'.repeat(33 * MIB), /larger than 32 MiB/],
    ['blanks', ' '.repeat(33 * MIB), /larger than 32 MiB/],
    ['no content', many(1100, () => JSON.stringify({ choices: [], pad: 'x'.repeat(32_000) })), /larger than 32 MiB/],
  ] as const) {
    t.match((await outcome(chatWire, body)).thrown, { ...free, message }, says)
  }
})

t.test('a call that passes a bound behind text is charged, too', async t => {
  const { wire, whole, text } = forms[5]!
  const call = JSON.stringify(whole([{ functionCall: { name: 'f', args: '?' } }])).replace(
    '"?"',
    `{"a":${nested(128)}}`,
  )
  const said = { candidates: [{ content: { parts: [text(0)] } }] }
  const tools: ChatRequest['tools'] = [{ type: 'function', function: { name: 'f' } }]
  const { events } = await outcome(wire, [JSON.stringify(said), call], true, undefined, undefined, { tools })
  t.match(events.slice(-2), [
    { type: 'usage', written: call.length, estimated: true },
    { type: 'error', error: written(/nests deeper/) },
  ])
})

t.test('what takes long to read, for what it says, is bounded by itself', async t => {
  const extra = (json: string) => JSON.stringify(chat([text(0)])).replace('{', `{"extra":${json},`)
  const saying = (characters: number, letter = 'a') =>
    JSON.stringify(chat([{ type: 'text', text: letter.repeat(characters) }]))
  const named = (count: number) => JSON.stringify(Object.fromEntries(many(count, at => [`name ${at}`, at])))
  const long = (count: number) => `[${`${'7'.repeat(256)},`.repeat(count)}0]`
  const image = JSON.stringify('A'.repeat(9 * MIB))
  const refused: [says: string, body: string, expected: object][] = [
    ['a long string with escapes', saying(5 * MIB, '\n'), written(/text is longer than 4194304/)],
    [
      'names in what a tool is called with',
      JSON.stringify(chat([{ ...called(0), function: { name: 'f', arguments: named(20_001) } }])),
      written(/more than 20,000 names/),
    ],
  ]
  for (const [says, body, expected] of refused) t.match((await outcome(chatWire, body)).thrown, expected, says)
  t.match((await outcome(chatWire, saying(4 * MIB + 1))).thrown, written(/text is longer/), 'text')
  const streamed = await outcome(chatWire, [saying(4 * MIB + 1)], true)
  t.equal(counted(streamed.events, 'finish'), 1, 'which passes on in a stream')
  const atOnce = written(/more than 8388608 characters in one frame/)
  t.match((await outcome(chatWire, [saying(9 * MIB)], true)).thrown, atOnce, 'of which one event may not say all')
  const hidden = [{ type: 'redacted_thinking', data: 'a'.repeat(9 * MIB) }]
  const thought = JSON.stringify({ type: 'message', content: hidden, stop_reason: 'end_turn' })
  t.match((await outcome(messages, thought)).thrown, atOnce, 'and reasoning that nobody sees counts')
  const told: [says: string, body: string][] = [
    ['names that repeat', extra(`[${'{"token":"a","logprob":0},'.repeat(50_000)}0]`)],
    ['names that are much alike', extra(`[${'{"a1bcd":0,"a2bcd":0},'.repeat(40_000)}0]`)],
    ['names within the bound', extra(named(60_000))],
    ['long whole numbers', extra(long(4000))],
    ['an image', extra(image)],
    ['text', saying(4_000_000, '\n')],
  ]
  for (const [says, body] of told) t.equal(counted((await outcome(chatWire, body)).events, 'finish'), 1, says)
})
const delta = (delta: unknown) => JSON.stringify({ choices: [{ index: 0, delta }] })

t.test('a name of a member has 16,383 characters at most, wherever an answer is cut', async t => {
  const named = (length: number, before = '') =>
    JSON.stringify({
      a: before,
      ['n'.repeat(length)]: 1,
      choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }],
    })
  for (const before of ['', 'a'.repeat(256 * 1024 - 1000)]) {
    const { thrown } = await outcome(chatWire, [named(16_384, before)])
    t.match(thrown, failure(/name of a member/))
    t.notOk((await outcome(chatWire, [named(16_383, before)])).thrown)
  }
})

t.test('calls and blocks of a stream count together, and so do the values in arguments', async t => {
  const begin = (at: number) =>
    delta({ tool_calls: [{ index: at, id: `c${at}`, function: { name: 'f', arguments: '{}' } }] })
  const streams: [says: string, events: readonly string[], expected: object][] = [
    ['1,001 calls', many(1001, begin), written(/more than 1,000 tool calls/)],
    [
      '1,001 calls without a name',
      many(1001, index => delta({ tool_calls: [{ index, id: `c${index}`, function: { arguments: '{}' } }] })),
      written(/more than 1,000 tool calls/),
    ],
    [
      '1,001 blocks',
      many(1001, index => delta({ reasoning_details: [{ type: 'reasoning.text', text: 'a', index }] })),
      written(/more than 1,000 blocks/),
    ],
    [
      'deep arguments',
      [
        begin(0).replace('{}', '{'),
        ...many(129, () => delta({ tool_calls: [{ index: 0, function: { arguments: '[' } }] })),
      ],
      written(/deeper than 128/),
    ],
    [
      'long arguments',
      many(5, at => begin(at).replace('{}', `{\\"a\\":\\"${'a'.repeat(MIB)}\\"}`)),
      written(/longer than 4194304 characters/),
    ],
    [
      'arguments with many values',
      many(3, at => begin(at).replace('{}', `{\\"a\\":[${many(40_000, () => 0)}]}`)),
      written(/more than 40,000 JSON values/),
    ],
  ]
  for (const [says, events, expected] of streams) {
    const { events: told, thrown } = await outcome(chatWire, events)
    const last = told.at(-1)
    t.match(thrown ?? (last?.type === 'error' && last.error), expected, says)
    t.match((await outcome(chatWire, events, false)).thrown, expected, `${says}, wanted whole`)
  }
  const pieces = many(130, () => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json: '[' },
  }))
  const start = { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c', name: 'f' } }
  const streamed = [{ type: 'message_start', message: {} }, start, ...pieces].map(event => JSON.stringify(event))
  t.match((await outcome(messages, streamed, false)).thrown, written(/deeper than 128/), 'on a wire that looks at none')
})

t.test('what was answered before takes linear time, however much it is', async t => {
  const end = [delta({ content: 'ok' }), JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] }), '[DONE]']
  const grown = many(runs(20_000), at =>
    delta({ reasoning_details: [{ type: 'reasoning.text', text: at === 1 ? 'aa' : 'a', index: 0 }] }),
  )
  t.equal(
    counted((await outcome(chatWire, [...grown, ...end])).events, 'finish'),
    1,
    'reasoning that once repeated itself',
  )
  const fields = Object.fromEntries(many(runs(60_000), at => [`f${at}`, 0]))
  const start = { type: 'content_block_start', index: 0, content_block: { type: 'novel', ...fields } }
  const merge = { type: 'content_block_delta', index: 0, delta: { type: 'novel_delta', more: 'a' } }
  const events = [
    { type: 'message_start', message: {} },
    start,
    ...many(runs(20_000), () => merge),
    { type: 'message_stop' },
  ]
  const native = await outcome(
    messages,
    events.map(event => JSON.stringify(event)),
  )
  t.equal(counted(native.events, 'native'), 1, 'a block of many fields that grows')
  const words = `${'a'.repeat(4_000_000)}YZ`
  const segments = many(runs(9000), at => ({ segment: { text: at % 2 ? 'Y' : 'Z' }, groundingChunkIndices: [0] }))
  const grounded = {
    content: { parts: [{ text: words }] },
    groundingMetadata: { groundingChunks: [{ web: { uri: 'https://acme.example' } }], groundingSupports: segments },
    finishReason: 'STOP',
  }
  const body = JSON.stringify({ candidates: [grounded] })
  const cited = await outcome(forms[5]!.wire, body, false, undefined, undefined, SEARCHING)
  t.equal(counted(cited.events, 'finish'), 1, 'sources that are looked for again and again')
})

t.test('what a thousand blocks or calls have begun costs no more for each entry that follows', t => {
  const reasoning = (id: number) => ({ type: 'reasoning.text', id: `i${id}`, index: 0 })
  const nameless = (index: number) => ({ index, id: `c${index}` })
  const forms: [says: string, deltas: (begun: number) => string[]][] = [
    ['blocks', begun => lists('reasoning_details', [...many(begun, reasoning), ...many(10_000, () => reasoning(0))])],
    ['calls', begun => lists('tool_calls', [...many(begun, nameless), ...many(10_000, () => ({ index: 0 }))])],
  ]
  const lists = (name: string, entries: readonly unknown[]) =>
    many(Math.ceil(entries.length / 1000), at => delta({ [name]: entries.slice(at * 1000, at * 1000 + 1000) }))
  const timed = (deltas: readonly string[]) => () => {
    const decoder = chatWire.decoder('stream', target({ translator: chatWire }))
    return cpuMs(() => {
      for (const data of deltas) decoder.frame({ data, name: undefined })
    })
  }
  const fine = (one: number, thousand: number) => thousand < 6 * one
  for (const [says, deltas] of forms) {
    const [one = 0, thousand = 0] = leastOf([timed(deltas(1)), timed(deltas(1000))], fine)
    t.ok(fine(one, thousand), `${says}: ${one} ms with one, ${thousand} ms with a thousand`)
  }
  t.end()
})

t.test('what breaks a decoder, or the reader of an error, is a failure of its provider', async t => {
  const broken = (): never => {
    throw new TypeError('Cannot convert object to primitive value')
  }
  const decoder = { done: false, frame: broken, end: () => [] }
  const wire: Translator = { ...chatWire, decoder: () => decoder, error: broken }
  const reported = { ...failure(/it cannot be read/), cause: TypeError }
  t.match((await outcome(wire, '{}')).thrown, reported)
  t.match(upstreamErrorOf(target({ translator: wire }), 401, Buffer.from('{}')), {
    ...reported,
    upstreamStatus: 401,
  })
  const end = { done: false, frame: (): Event[] => [{ type: 'text', choice: 0, text: 'a' }], end: broken }
  const { events } = await outcome({ ...chatWire, decoder: () => end }, ['{}'], true)
  t.match(events, [{ type: 'text' }, { type: 'error', error: reported }], 'in the middle of a stream')
})

t.test('arguments at paths neither reach far nor deep', async t => {
  const read = (paths: readonly string[]) => {
    const partialArgs = paths.map(jsonPath => ({ jsonPath, numberValue: 1 }))
    const parts = [{ functionCall: { name: 'f', partialArgs, willContinue: true } }, { functionCall: {} }]
    return outcome(forms[5]!.wire, JSON.stringify({ candidates: [{ content: { parts }, finishReason: 'STOP' }] }))
  }
  t.match((await read(many(100, at => `$.a${at}[60000]`))).thrown, failure(/unreadable/), 'lists that are nearly empty')
  t.match((await read([`$${'.a'.repeat(200_000)}`])).thrown, failure(/unreadable/), 'a path of many steps')
  t.equal((await read(many(1000, at => `$.a[${at}]`))).thrown, undefined)
  const candidate = (calls: readonly object[]) => ({
    content: { parts: calls.map(functionCall => ({ functionCall })) },
    finishReason: 'STOP',
  })
  const answer = (candidates: readonly object[]) => outcome(forms[5]!.wire, JSON.stringify({ candidates }))
  const sparse = { name: 'f', partialArgs: [{ jsonPath: '$.a[30000]', boolValue: true }] }
  t.match((await answer([candidate([sparse, sparse])])).thrown, failure(/unreadable/), 'lists of all calls')
  const candidates = [candidate([sparse]), { ...candidate([sparse]), index: 1 }]
  t.match((await answer(candidates)).thrown, failure(/unreadable/), 'and of all candidates')
})

t.test('calls of one frame that say nothing count, and cost little', async t => {
  const calls = (count: number) => many(count, () => ({}))
  const choices = many(2, index => ({ index, delta: { tool_calls: calls(501) } }))
  const frame = JSON.stringify({ choices })
  const { events } = await outcome(chatWire, [delta({ content: 'a' }), frame])
  t.match(events.at(-1), { type: 'error', error: written(/more than 1,000 tool calls/) }, 'of all choices')
  const decoder = chatWire.decoder('stream', target({ translator: chatWire }))
  decoder.frame({ data: delta({ tool_calls: calls(1000) }), name: undefined })
  t.ok(decoder.kept! > 100_000, `${decoder.kept} characters are kept`)

  const added = { type: 'response.output_item.added', item: { type: 'function_call', call_id: 'a' } }
  const streamed = many(1001, () => JSON.stringify(added))
  const told = await outcome(responses.wires[0] as Translator<'chat'>, streamed, false)
  t.match(told.thrown, written(/more than 1,000 tool calls/), 'at one index')

  const text = JSON.stringify({ type: 'message_delta', delta: 'a'.repeat(2 * MIB) })
  const timed = () =>
    cpuMs(() => messages.decoder('stream', target({ translator: messages })).frame({ data: text, name: undefined }))
  const [took = 0] = leastOf([timed], ms => ms < 200)
  t.ok(took < 200, `a text in the place of a delta: ${took} ms`)
})

t.test('what is kept of answers takes memory of the budget, on every wire, and gives it back', async t => {
  for (const { wire, whole, text } of forms) {
    const memory = budgetOf(8 * MIB)
    const large = JSON.stringify({ ...whole([text(0)]), extra: 'a'.repeat(5 * MIB) })
    t.match(
      (await outcome(wire, large, false, memory)).thrown,
      { status: 502, message: /larger than 2.6 MiB/ },
      wire.wire,
    )
    t.equal((await outcome(wire, JSON.stringify(whole([text(0)])), false, memory)).thrown, undefined)
    t.equal(memory.used, 0)
  }
  const memory = budgetOf(8 * MIB)
  const thoughts = many(100, () =>
    delta({ reasoning_details: [{ type: 'reasoning.text', text: 'a'.repeat(100_000), index: 0 }] }),
  )
  const { events } = await outcome(chatWire, thoughts, true, memory)
  t.match(events.at(-1), { type: 'error', error: { status: 529 } }, 'reasoning that a stream repeats at its end')
  t.equal(memory.used, 0)
  const unended = await outcome(chatWire, [delta({ content: 'a' }), 'a'.repeat(40 * MIB)], true, memory)
  t.match(unended.events.at(-1), { type: 'error', error: { status: 529 } }, 'an event that does not end')
  t.equal(memory.used, 0)
  const said = many(100, () => delta({ content: 'a'.repeat(10_000) }))
  const spoken = await outcome(chatWire, [...said, '[DONE]'], true, memory)
  t.equal(counted(spoken.events, 'finish'), 1)
})

t.test('the bodies of several requests in the place of one take memory until they are answered', async t => {
  const memory = budgetOf(64 * MIB)
  const ex = exchange({ request: { model: 'm', messages: [] }, target: target({ translator: chatWire }) })
  const input = ex.request!
  ex.outbound.parts = many(4, () => ({
    request: { path: '/', body: { text: 'x'.repeat(MIB) } },
    input,
    characters: MIB + 20,
  }))
  ex.outbound.fanOut = promptFanOut
  let most = 0
  const transport = {
    send(call: Parameters<Transport['send']>[0]) {
      most = Math.max(most, memory.used)
      return answering(JSON.stringify(chat([text(0)]))).send(call)
    },
  } satisfies Pick<Transport, 'send'> as Pick<Transport, 'send'> as Transport
  const { events } = await dispatch(transport, memory)(ex)
  t.ok(most > 4 * MIB, `${most} bytes`)
  t.ok(memory.used < MIB, 'what is kept then are the answers')
  for await (const _ of events);
})

t.test('answers of several requests in the place of one keep one copy of each', async t => {
  const memory = budgetOf(29 * MIB)
  const body = JSON.stringify({ ...chat([text(0)]), extra: 'A'.repeat(MIB) })
  for (const [says, parts] of [
    ['as many as there is room for', 8],
    ['more than that', 20],
  ] as const) {
    const ex = exchange({ request: { model: 'm', messages: [] }, target: target({ translator: chatWire }) })
    const input = ex.request!
    ex.outbound.parts = many(parts, () => ({ request: { path: '/', body: {} }, input, characters: 20 }))
    ex.outbound.fanOut = promptFanOut
    const transport = {
      send: (call: Parameters<Transport['send']>[0]) => answering(body).send(call),
    } satisfies Pick<Transport, 'send'> as Pick<Transport, 'send'> as Transport
    const whole = dispatch(transport, memory)(ex)
    if (parts < 10) for await (const _ of (await whole).events);
    else {
      await t.rejects(whole, { code: 'upstream_invalid_response', status: 502, failover: false, billed: true }, says)
      t.equal(ex.answer.billedFailure, 'parts', 'those that were answered are charged')
    }
    t.equal(memory.used, 0, says)
  }
})

t.test('what small frames of a stream hold beside their text takes memory, too', async t => {
  const word = (at: number) => `${at} ${'a'.repeat(3000)}`
  const grounding = (groundingMetadata: unknown) =>
    JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a' }] }, groundingMetadata }] })
  const textChunk = { choices: [{ index: 0, delta: { content: 'a' } }] }
  const calling = { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{' } }] }
  const streams: [says: string, wire: Translator, event: (at: number) => unknown][] = [
    ['searches', forms[5]!.wire, at => grounding({ webSearchQueries: [word(at)] })],
    ['sources', forms[5]!.wire, at => grounding({ groundingChunks: [{ web: { uri: word(at) } }] })],
    [
      'fields of reasoning',
      chatWire,
      at => delta({ reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0, [`k${at}`]: word(at) }] }),
    ],
    [
      'calls that wait',
      chatWire,
      at => delta({ content: 'a', tool_calls: [{ index: 0, function: { arguments: word(at) } }] }),
    ],
    ['lists of sources', chatWire, at => JSON.stringify({ ...textChunk, citations: many(at === 0 ? 700 : 1, word) })],
    ['ids of calls', chatWire, at => delta({ content: 'a', tool_calls: [{ index: at, id: word(at), function: {} }] })],
    [
      'names beside text',
      messages,
      at => ({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'a' }, extra: word(at).repeat(10) }),
    ],
    ['text after a call', chatWire, at => delta(at === 0 ? calling : { content: word(at) })],
    [
      'citations of one block',
      messages,
      at => ({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: 'a', citations: [{ url: word(at).repeat(10) }] },
      }),
    ],
  ]
  for (const [says, wire, event] of streams) {
    const memory = budgetOf(4 * MIB)
    const events = many(1000, at => event(at)).map(one => (typeof one === 'string' ? one : JSON.stringify(one)))
    const { events: told, thrown } = await outcome(wire, events, true, memory)
    const last = told.at(-1)
    t.match(thrown ?? (last?.type === 'error' && last.error), { status: thrown ? 502 : 529 }, says)
    t.equal(memory.used, 0)
  }
  const tokens = many(10_000, at => `t${at}`)
  const ordinary = tokens.map(token =>
    JSON.stringify({
      id: 'chatcmpl-0123456789abcdef',
      choices: [
        { index: 0, delta: { content: token }, logprobs: { content: many(20, () => ({ token, logprob: -1 })) } },
      ],
    }),
  )
  const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const grown = tokens.slice(0, 1000).map((_, at) => tokens.slice(0, at).join(' '))
  const others: [says: string, events: readonly string[]][] = [
    ['names, numbers and log probabilities', ordinary],
    [
      'reasoning that is repeated',
      grown.map(text => delta({ reasoning_details: [{ type: 'reasoning.text', text, index: 0 }] })),
    ],
    [
      'the message so far',
      grown.map((content, at) =>
        JSON.stringify({ choices: [{ index: 0, delta: { content: ` t${at}` }, message: { content } }] }),
      ),
    ],
  ]
  for (const [says, events] of others) {
    const whole = await outcome(chatWire, [...events, finish, '[DONE]'], true, budgetOf(MIB))
    t.equal(counted(whole.events, 'finish'), 1, `${says} take none`)
  }
})

t.test('what a stream keeps is as little as what a whole answer may hold', async t => {
  const last = async (...given: Parameters<typeof outcome>) => (await outcome(...given)).events.at(-1)
  const hidden = (index: number) => ({ type: 'reasoning.encrypted', data: 'a'.repeat(7 * MIB), index })
  const large = many(5, at => delta({ reasoning_details: [hidden(at)] }))
  t.match(await last(chatWire, large), { type: 'error', error: written(/larger than 32 MiB/) })
  const both = many(10_001, at =>
    JSON.stringify({ choices: [{ index: at % 2, delta: at % 2 ? { content: 'a' } : { reasoning_content: 'b' } }] }),
  )
  const ends = [0, 1].map(index => JSON.stringify({ choices: [{ index, delta: {}, finish_reason: 'stop' }] }))
  const two = await last(chatWire, [...both, ...ends, '[DONE]'], true, undefined, responsesEndpoint)
  t.match(two, { type: 'finish' }, 'of two choices by turns each is one block')
  const turns = many(10_001, at => delta(at % 2 ? { content: 'a' } : { reasoning_content: 'b' }))
  const blocks = await last(chatWire, turns, true, undefined, responsesEndpoint)
  t.match(blocks, { type: 'error', error: written(/more than 10,000 blocks/) })
})

t.test('the choices of one frame have 20,000 pieces at most', async t => {
  const parts = (count: number) => many(count, () => ({ type: 'text', text: 'a' }))
  const chosen = (count: number) =>
    JSON.stringify({
      choices: many(4, index => ({ index, message: { content: parts(count) }, finish_reason: 'stop' })),
    })
  const candidates = (count: number) =>
    JSON.stringify({
      candidates: many(4, index => ({ index, content: { parts: parts(count) }, finishReason: 'STOP' })),
    })
  for (const [wire, body] of [
    [chatWire, chosen],
    [wireOf(mistral), chosen],
    [wireOf(gemini), candidates],
  ] as const) {
    t.match((await outcome(wire, body(6000))).thrown, written(/more than 20,000 pieces/), wire.wire)
    t.notOk((await outcome(wire, body(1000))).thrown, wire.wire)
  }
})

t.test('what a client gets at the end of a stream alone has 10,000 parts at most', async t => {
  const started = { type: 'message_start', message: {} }
  const block = (index: number) => ({ type: 'content_block_start', index, content_block: { type: 'acme' } })
  const stopped = (index: number) => ({ type: 'content_block_stop', index })
  const begun = delta({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{' } }] })
  const count = 10_002
  const rows: [says: string, wire: Translator, events: readonly string[], endpoint?: Endpoint][] = [
    ['blocks that do not end', messages, [started, ...many(count, block)].map(event => JSON.stringify(event))],
    [
      'blocks of its own',
      messages,
      [started, ...many(count, at => [block(at), stopped(at)]).flat()].map(event => JSON.stringify(event)),
    ],
    ['images', chatWire, many(count, () => delta({ images: [{ image_url: { url: 'a' } }] })), responsesEndpoint],
    [
      'refusals and text by turns',
      chatWire,
      many(count, at => delta(at % 2 ? { content: 'a' } : { refusal: 'b' })),
      responsesEndpoint,
    ],
    [
      'thoughts and text by turns behind a call',
      chatWire,
      [begun, ...many(count, at => delta(at % 2 ? { content: 'a' } : { reasoning_content: 'b' }))],
    ],
  ]
  for (const [says, wire, events, endpoint] of rows) {
    const { events: told, thrown } = await outcome(wire, events, true, undefined, endpoint)
    const last = told.at(-1)
    t.match(thrown ?? (last?.type === 'error' && last.error), written(/more than 10,000 blocks/), says)
  }
})

t.test('an address that is cited a thousand times is written as often, and no longer than any address is', async t => {
  const markers = '[1]'.repeat(1000)
  const cited = (url: string) =>
    JSON.stringify({ choices: [{ message: { content: markers }, finish_reason: 'stop' }], citations: [url] })
  const sourcesOf = async (body: string, wire = chatWire) => {
    const { events, thrown } = await outcome(wire, body, false, undefined, undefined, SEARCHING)
    return thrown ? `${thrown.message}` : events.filter(event => event.type === 'source').length
  }
  const address = (length: number) => `https://acme.example/${'a'.repeat(length)}`
  t.equal(await sourcesOf(cited(address(100))), 1000)
  t.equal(await sourcesOf(cited(address(4 * MIB))), 0)
  const titled = JSON.stringify({
    choices: [{ message: { content: 'a' }, finish_reason: 'stop' }],
    search_results: [{ url: address(1), title: 'a'.repeat(2000) }],
  })
  const [source] = (await outcome(chatWire, titled)).events.filter(event => event.type === 'source')
  t.equal(source?.title?.length, 1024, 'a title is cut')
  const supports = many(1000, at => ({ segment: { startIndex: at, endIndex: at + 1 }, groundingChunkIndices: [0] }))
  const candidate = (index: number) => ({
    index,
    content: { parts: [{ text: 'a'.repeat(1000) }] },
    groundingMetadata: { groundingChunks: [{ web: { uri: address(8000) } }], groundingSupports: supports },
    finishReason: 'STOP',
  })
  const many8k = JSON.stringify({ candidates: many(2, candidate) })
  t.match(await sourcesOf(many8k, forms[5]!.wire), /more than 8388608 characters in one frame/)
})

t.test('a stream whose text its client gets again at the end is held as a whole answer is', async t => {
  const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const text = [...many(5, () => delta({ content: 'a'.repeat(MIB) })), finish, '[DONE]']
  const failureOf = async (...given: Parameters<typeof outcome>) => {
    const { events, thrown } = await outcome(...given)
    const last = events.at(-1)
    return thrown ?? (last?.type === 'error' ? last.error : undefined)
  }
  t.equal(await failureOf(chatWire, text), undefined, 'others pass on as they come')
  t.match(await failureOf(chatWire, text, true, undefined, responsesEndpoint), written(/text is longer than 4194304/))
  const short = text.slice(3)
  t.equal(await failureOf(chatWire, short, true, undefined, responsesEndpoint), undefined)
  t.match(
    await failureOf(chatWire, short, true, budgetOf(3 * MIB), responsesEndpoint),
    { status: 502 },
    'it takes memory',
  )
})
