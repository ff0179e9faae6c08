/** The bytes of an answer in the Messages form: the events of a stream, one body, and errors. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { plugin as claude } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Translator } from '../../src/core/translator.ts'
import { messages } from '../../src/endpoints/inference.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { upstreamError } from '../../src/wire/upstream-error.ts'
import { exchange, principal, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'
import type { Json } from './bodies.ts'
import { answers, endings, unasked } from './messages-answers.ts'
import { valid } from './messages-bodies.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const price = flat({ prompt: '1', completion: '2', input_cache_read: '0.5', input_cache_write: '2', web_search: '1' })
const answering = (stream: boolean): Exchange =>
  exchange({ endpoint: messages, request: { ...valid, stream }, target: target({ mapping: { price } }), principal })
const finish = (reason: string): Event => ({ type: 'finish', choice: 0, reason }) as Event
const usage: Event = { type: 'usage', usage: { prompt: 10, completion: 5 } }

/** The payloads of a stream, each under its own name. */
function payloads(sse: string): Json[] {
  return new SseFraming().push(Buffer.from(sse)).map(({ name, data }) => {
    const payload = JSON.parse(data) as Json
    assert.equal(payload.type, name)
    return payload
  })
}

function streamed(batches: readonly (readonly Event[])[], ex = answering(true)): string {
  const encoder = anthropicMessages.encoder(ex)
  let out = ''
  for (const batch of batches) {
    ex.observe(batch)
    out += encoder.write(batch) ?? ''
  }
  return out + encoder.end()
}

function whole(events: readonly Event[], ex = answering(false)): Json & { content: Json[] } {
  const encoder = anthropicMessages.encoder(ex)
  ex.observe(events)
  assert.equal(encoder.write(events), undefined)
  return JSON.parse(String(encoder.end()))
}

/** Puts a stream together as a client does, and refuses what a strict one would. */
function folded(stream: readonly Json[]): Json & { content: Json[] } {
  const [first, ...rest] = stream as (Json & { index: number; delta: Json })[]
  assert.equal(first?.type, 'message_start')
  assert.equal(rest.pop()?.type, 'message_stop')
  const { delta, usage, metadata, type } = rest.pop()!
  assert.equal(type, 'message_delta')
  const content: Json[] = []
  let open = -1
  let json = ''
  for (const { type, index, delta, content_block: block } of rest) {
    if (type === 'content_block_start') {
      assert.equal(open, -1, 'one block is open at a time')
      assert.equal(index, content.length, 'indexes run')
      content.push({ ...(block as Json) })
      open = index
      json = ''
      continue
    }
    assert.equal(index, open)
    const last = content[open]!
    if (type === 'content_block_stop') {
      if (last.type === 'tool_use') last.input = JSON.parse(json)
      open = -1
    } else if (delta.type === 'text_delta') last.text += String(delta.text)
    else if (delta.type === 'thinking_delta') last.thinking += String(delta.thinking)
    else if (delta.type === 'signature_delta') last.signature = delta.signature
    else if (delta.type === 'citations_delta') last.citations = [...((last.citations ?? []) as Json[]), delta.citation]
    else if (delta.type === 'input_json_delta') json += String(delta.partial_json)
    else assert.fail(`unknown ${delta.type}`)
  }
  assert.equal(open, -1)
  return { ...(first.message as Json), content, ...delta, usage, metadata }
}

t.test('the events of a stream are named, framed and in order, whatever the text holds', async t => {
  const ex = answering(true)
  ex.observe([usage])
  const encoder = anthropicMessages.encoder(ex)
  const nasty = 'a\n\nevent: message_stop\r\n: \u2028\0\ud83d"\\'
  t.equal(
    encoder.write([{ type: 'start', id: 'x', model: 'y' }, text(nasty), usage, text('b')]),
    'event: message_start\ndata: {"type":"message_start","message":' +
      `{"id":"msg_${ex.logId}","type":"message","role":"assistant","model":"acme-large","content":[],` +
      '"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,' +
      '"cache_read_input_tokens":0,"output_tokens":0}}}\n\n' +
      'event: content_block_start\n' +
      'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
      'event: content_block_delta\n' +
      `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${JSON.stringify(nasty)}}}\n\n` +
      'event: content_block_delta\n' +
      'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}\n\n',
  )
  t.equal(encoder.write([usage]), undefined, 'nothing to see is no bytes')
  const end = String(encoder.end())
  t.ok(
    end.startsWith('event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta'),
  )
  t.ok(end.endsWith('\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'))
  t.equal(encoder.contentType, 'text/event-stream; charset=utf-8')
})

t.test('events become the same blocks in a stream and in a whole answer', async t => {
  for (const [says, events, content] of answers) {
    const own = (ex: Exchange) => JSON.parse(JSON.stringify(content).replaceAll('ID', ex.logId)) as Json[]
    const [one, other] = [answering(false), answering(true)]
    t.strictSame(whole([...events, usage, finish('stop')], one).content, own(one), says)
    const single = [...events, finish('stop'), usage].map(event => [event])
    t.strictSame(folded(payloads(streamed(single, other))).content, own(other), says)
  }
})

t.test('a client that did not ask for thinking gets none, and seals only beside a call', async t => {
  /** What the blocks are; of a seal only that it is one, whatever block carries it. */
  const typesOf = (content: Json[]) =>
    content.map(({ type, thinking, signature, data }) => {
      if (type !== 'thinking' && type !== 'redacted_thinking') return type
      assert.equal(thinking ?? '', '')
      const value = String(signature ?? data)
      const seal = value.startsWith('bWd3') ? Buffer.from(value, 'base64').toString() : value
      return `sealed ${seal.replace(/^.*\|/, '')}`
    })
  const asked = (stream: boolean) => {
    const ex = answering(stream)
    ex.answer.showsReasoning = false
    return ex
  }
  for (const [says, events, types] of unasked) {
    t.strictSame(typesOf(whole([...events, finish('stop')], asked(false)).content), types, says)
    const single = [...events, finish('stop')].map(event => [event])
    t.strictSame(typesOf(folded(payloads(streamed(single, asked(true)))).content), types, says)
  }
})

t.test('what a provider of the same wire thinks unasked is shown, also when it is replayed', async t => {
  const thought: Event = { type: 'reasoning', choice: 0, text: '', format: 'anthropic-claude-v1', signature: 'acme:s' }
  const body = { ...valid, thinking: { type: 'disabled' } }
  const answer = (wire: Translator, cached: boolean) => {
    const at = target({ translator: wire, mapping: { wires: new Map([['chat', wire]]) } })
    const model = { ...at.mapping.model, mappings: [at.mapping] }
    const catalog = { models: new Map([[model.id, model]]) } as Partial<Catalog> as Catalog
    const ex = exchange({ endpoint: messages, target: at, principal, snapshot: { catalog } })
    ex.request = anthropicMessages.decode(body, ex)
    t.equal(ex.answer.showsReasoning, false)
    if (cached) {
      ex.target = undefined
      ex.answer.cached = { provider: 'acme', model: model.id, externalId: at.mapping.externalId, logId: 'log', at: 0 }
    }
    return whole([thought, text('a'), finish('stop')], ex).content.map(({ type }) => type)
  }
  for (const cached of [false, true]) {
    t.strictSame(answer(claude.wires[0] as Translator, cached), ['thinking', 'text'])
    t.strictSame(answer(bedrock.wires[0] as Translator, cached), ['text'])
  }
})

t.test('any order of events reads the same streamed and whole', async t => {
  const pools = answers.map(([, events]) => fc.subarray(events.filter(({ type }) => type !== 'tool')))
  const calls = fc.array(fc.nat(2), { maxLength: 12 }).map(interleaved)
  const any = fc.tuple(fc.oneof(...pools), calls, fc.oneof(...pools)).map(parts => parts.flat())
  /** Without the ids of the exchange. */
  const mask = (content: Json[]) => JSON.stringify(content).replace(/(toolu|srvtoolu)_[^"]+/g, '$1')
  const holds = fc.property(any, fc.infiniteStream(fc.integer({ min: 1, max: 4 })), (events, cuts) => {
    const batches: Event[][] = []
    for (let i = 0; i < events.length; ) {
      const next = i + cuts.next().value
      batches.push(events.slice(i, next))
      i = next
    }
    const { content } = whole([...events, finish('stop')])
    assert.equal(mask(folded(payloads(streamed([...batches, [finish('stop')]]))).content), mask(content))
    for (const { type, input } of content) if (type === 'tool_use') assert.deepEqual(input, { k: { i: 0 } })
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(500) }))
})

/** Calls whose arguments come in three pieces each, in the order of `order`. */
function interleaved(order: readonly number[]): Event[] {
  const pieces = ['{"k"', ':', '{"i":0}}']
  const made = new Map<number, number>()
  const events: Event[] = []
  const put = (index: number) => {
    const step = made.get(index) ?? 0
    if (step >= pieces.length) return
    made.set(index, step + 1)
    const first = step === 0 ? { id: `c${index}`, name: 'f' } : {}
    events.push({ type: 'tool', choice: 0, index, args: pieces[step]!, ...first })
  }
  for (const index of order) put(index)
  for (const index of [...made.keys()]) for (let i = 0; i < pieces.length; i++) put(index)
  return events
}

t.test('text between the pieces of a call is shown as soon as the call is complete', async t => {
  const encoder = anthropicMessages.encoder(answering(true))
  const piece = (args: string): Event => ({ type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args }) as Event
  t.match(encoder.write([piece('{"a"'), text('Hello')]), /^(?![\s\S]*Hello)[\s\S]*tool_use/)
  t.match(encoder.write([piece(':1}')]), /:1\}[\s\S]*content_block_stop[\s\S]*Hello/)
  t.match(encoder.write([text('you')]), 'you')
})

t.test('calls that end one by one take time in proportion to what waits behind them', t => {
  const piece = (index: number, args: string): Event =>
    ({ type: 'tool', choice: 0, index, id: `c${index}`, name: 'f', args }) as Event
  const timed = (count: number) => () => {
    const encoder = anthropicMessages.encoder(answering(true))
    for (let index = 0; index < count / 20; index++) encoder.write([piece(index, '{')])
    for (let at = 0; at < count; at++) encoder.write([text('a'), { type: 'refusal', choice: 0, text: 'b' }])
    return cpuMs(() => {
      for (let index = 0; index < count / 20; index++) encoder.write([piece(index, '}')])
    })
  }
  timed(100)()
  const [one = 0, four = 0] = leastOf([timed(5000), timed(20_000)], inProportion)
  t.ok(inProportion(one, four), `${one} ms, and ${four} ms for four times as many`)
  t.end()
})

t.test('pieces of one text that wait behind a call are written as one', async t => {
  const encoder = anthropicMessages.encoder(answering(true))
  const thought = (of: string, signature?: string): Event =>
    Object.assign(
      { type: 'reasoning', choice: 0, text: of, format: 'f', block: 1 } as const,
      signature && { signature },
    )
  const waiting = [...'Hello'].map(letter => text(letter))
  const thoughts = [...[...'Hm'].map(letter => thought(letter)), thought('', 'seal'), thought('more')]
  encoder.write([{ type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args: '{' }, ...waiting, ...thoughts])
  const out = String(encoder.write([{ type: 'tool', choice: 0, index: 0, args: '}' }]))
  t.strictSame(waiting.map(event => 'text' in event && event.text).join(''), 'Hello', 'the events of the answer stay')
  t.strictSame(
    payloads(out).flatMap(({ delta }) => (delta as Json)?.text ?? (delta as Json)?.thinking ?? []),
    ['Hello', 'Hm', 'more'],
  )
})

t.test('arguments in many pieces, each of which could be the last, are read in linear time', async t => {
  const encoder = anthropicMessages.encoder(answering(true))
  const piece = (index: number, args: string): Event =>
    ({ type: 'tool', choice: 0, index, id: 'c', name: 'f', args }) as Event
  encoder.write([piece(0, '{"a":['), piece(1, '{}')])
  const took = cpuMs(() => {
    for (let i = 0; i < 30_000; i++) encoder.write([piece(0, '{"k":"0123456789"},{}'), piece(0, ',')])
  })
  t.ok(took < 1000, `${took} ms of CPU`)
})

t.test('an answer ends with its reason', async t => {
  for (const [events, reason, stop] of endings) {
    const expected = { stop_sequence: null, stop_details: undefined, ...stop }
    const facts = ({ stop_reason, stop_sequence, stop_details }: Json) => ({ stop_reason, stop_sequence, stop_details })
    t.strictSame(facts(whole([...events, finish(reason)])), expected)
    t.strictSame(facts(folded(payloads(streamed([[...events, finish(reason)]])))), expected)
  }
})

t.test('a provider of the same wire is quoted where the reason alone would say less', async t => {
  const ending = (fields: Json, wire = 'anthropic.messages'): Event => ({
    type: 'finish',
    choice: 0,
    reason: 'stop',
    ending: { wire, fields },
  })
  const stopped = { stop_reason: 'stop_sequence', stop_sequence: 'END' }
  t.match(whole([text('a'), ending(stopped)]), stopped)
  t.match(folded(payloads(streamed([[text('a'), ending(stopped)]]))), stopped)
  t.match(whole([text('a'), ending(stopped, 'other')]), { stop_reason: 'end_turn', stop_sequence: null })
  const refused = { stop_reason: 'refusal', stop_details: { type: 'refusal', category: 'cyber', explanation: null } }
  t.match(whole([ending(refused)]), refused)
  const ran = { stop_reason: 'end_turn', container: { id: 'c1', expires_at: 'soon' } }
  t.match(folded(payloads(streamed([[ending(ran)]]))), ran)
  t.match(folded(payloads(streamed([[ending(refused)]]))), refused)
  const cleared = { stop_reason: 'end_turn', context_management: { applied_edits: [{ type: 'clear' }] } }
  t.match(whole([text('a'), ending(cleared)]), cleared)
  const { delta, ...beside } = payloads(streamed([[text('a'), ending(cleared)]])).find(
    ({ type }) => type === 'message_delta',
  )!
  t.match(beside, { context_management: cleared.context_management })
  t.notMatch(delta, { context_management: {} }, 'where the wire has it')
})

t.test('clients of the same wire get the caller of a tool', async t => {
  const caller = { type: 'code_execution_20250825', tool_id: 's1' }
  const call = (wire: string): Event[] => [
    { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', own: { wire, fields: { caller } } },
    { type: 'tool', choice: 0, index: 0, args: '{}' },
    finish('tool_calls'),
  ]
  const called = (answer: Json) => (answer.content as Json[])[0]
  t.match(called(whole(call('anthropic.messages'))), { type: 'tool_use', id: 'c', caller })
  t.match(called(folded(payloads(streamed([call('anthropic.messages')])))), { type: 'tool_use', id: 'c', caller })
  t.notOk('caller' in called(whole(call('other')))!)
})

t.test('usage leaves out what the cache gave and took, and costs the same streamed and whole', async t => {
  const counted: Event = {
    type: 'usage',
    usage: {
      prompt: 100,
      completion: 20,
      input_cache_read: 30,
      input_cache_write: 40,
      input_cache_write_1h: 10,
      internal_reasoning: 5,
      web_search: 2,
    },
  }
  const events = [text('a'), counted, { type: 'tier', tier: 'default' } as Event, finish('stop')]
  const answer = whole(events)
  t.strictSame(answer.usage, {
    input_tokens: 20,
    cache_creation_input_tokens: 50,
    cache_read_input_tokens: 30,
    cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 10 },
    output_tokens: 20,
    output_tokens_details: { thinking_tokens: 5 },
    server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
    service_tier: 'standard',
    cost: (answer.usage as { cost: number }).cost,
  })
  t.type((answer.usage as Json).cost, 'number')
  t.strictSame(folded(payloads(streamed([events]))).usage, answer.usage)
  t.match(whole([text('abcd'.repeat(4)), finish('stop')]).usage, { output_tokens: 4 }, 'estimated when not reported')
  const odd: Event = { type: 'usage', usage: { prompt: 5, completion: 1, input_cache_read: 9 } }
  t.match(whole([text('a'), odd]).usage, { input_tokens: 0, cache_read_input_tokens: 9 })
})

t.test('a stream begins with the prompt, estimated until it is reported, and with no output yet', async t => {
  const begins = (events: readonly Event[], ex = answering(true)) =>
    (payloads(streamed([events], ex))[0]!.message as { usage: Json }).usage
  const report: Event = {
    type: 'usage',
    usage: { prompt: 10, completion: 5, input_cache_read: 4, internal_reasoning: 2 },
  }
  t.strictSame(begins([report, text('a'), finish('stop')]), {
    input_tokens: 6,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 4,
    output_tokens: 0,
  })
  const ex = answering(true)
  const estimated = ex.prompt.usage.prompt
  t.ok(estimated! > 0)
  t.match(begins([text('a')], ex), { input_tokens: estimated, output_tokens: 0 })
})

t.test('metadata is that of a chat answer, at the end', async t => {
  const ex = answering(true)
  const [start, ...rest] = payloads(streamed([[text('a'), usage, finish('stop')]], ex))
  t.notOk('metadata' in (start!.message as Json))
  const { metadata } = rest.at(-2) as { metadata: Json }
  t.match(metadata, { request_id: ex.id, log_id: ex.logId, used_model: 'acme-large', used_provider: 'acme' })
  t.match(whole([text('a')]), { type: 'message', role: 'assistant', metadata: { used_provider: 'acme' } })
})

t.test('a failure after the first byte is an error event, and nothing looks complete', async t => {
  const ex = answering(true)
  const encoder = anthropicMessages.encoder(ex)
  ex.observe([text('abcdefgh')])
  encoder.write([text('abcdefgh')])
  const message = 'The upstream provider ended the stream before it was complete.'
  const body = JSON.stringify({ type: 'error', error: { type: 'api_error', message } })
  t.equal(encoder.fail(errors.truncated()), `event: error\ndata: ${body}\n\n`)
  t.equal(ex.usage.completion, 2, 'what was delivered is counted')
  t.equal(anthropicMessages.encoder(answering(false)).fail(errors.truncated()), undefined)
})

t.test('an error inside a stream, which has no status, says that a provider is overloaded', async t => {
  const typeOf = (status: number) => {
    const said = String(anthropicMessages.encoder(answering(true)).fail(upstreamError(status, { message: 'No.' })))
    return JSON.parse(said.slice(said.indexOf('{'))).error.type
  }
  t.strictSame([429, 529, 500, 401].map(typeOf), ['rate_limit_error', 'overloaded_error', 'api_error', 'api_error'])
})

t.test('each status has its error type', async t => {
  const types = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    402: 'billing_error',
    403: 'permission_error',
    404: 'not_found_error',
    408: 'timeout_error',
    409: 'invalid_request_error',
    410: 'invalid_request_error',
    413: 'request_too_large',
    415: 'invalid_request_error',
    429: 'rate_limit_error',
    499: 'invalid_request_error',
    500: 'api_error',
    502: 'api_error',
    503: 'api_error',
    504: 'timeout_error',
    529: 'overloaded_error',
  }
  for (const [status, type] of Object.entries(types)) {
    const error = new GatewayError({ status: Number(status), type: 'x', code: 'y', message: 'm', param: 'p' })
    t.strictSame(anthropicMessages.error(error), { type: 'error', error: { type, message: 'm' } })
  }
})
