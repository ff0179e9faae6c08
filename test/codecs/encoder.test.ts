/** The bytes of an answer: the chunks of a stream, one body, and what both say of usage, cost and routing. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { json } from '../../src/codecs/json.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import type { Attempt } from '../../src/core/attempt.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Target } from '../../src/core/translator.ts'
import { errors } from '../../src/lib/error.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { exchange, principal, text, thrown } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'
import { answers } from './answers.ts'
import { type Json, valid } from './bodies.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

interface Chunk {
  choices: { index: number; delta: Json; finish_reason: string | null }[]
  usage?: Json
  metadata?: Json
  error?: Json
}
const usage: Event = { type: 'usage', usage: { prompt: 10, completion: 5 } }
const finish = (choice = 0, reason = 'stop'): Event => ({ type: 'finish', choice, reason }) as Event
const to = (): Target => target({ mapping: { price: flat({ prompt: '1', completion: '2' }) }, secret: 'sk-1' })
const answering = (stream: boolean, facts: object = {}): Exchange =>
  exchange({ request: { ...valid, stream }, target: to(), principal, ...facts })

/** The chunks of an answer, which must end with the terminator. */
function parsed(sse: string): Chunk[] {
  const frames = new SseFraming().push(Buffer.from(sse))
  assert.equal(frames.at(-1)?.data, '[DONE]')
  return frames.slice(0, -1).map(frame => JSON.parse(frame.data) as Chunk)
}

function streamed(batches: readonly (readonly Event[])[], ex = answering(true), codec: Codec = openAiChat): string {
  const encoder = codec.encoder(ex)
  let out = ''
  for (const batch of batches) {
    ex.observe(batch)
    out += encoder.write(batch) ?? ''
  }
  return out + encoder.end()
}
function whole(
  events: readonly Event[],
  ex = answering(false),
  codec: Codec = openAiChat,
): { choices: { message: Json; finish_reason: string; index: number }[] } & Json {
  const encoder = codec.encoder(ex)
  ex.observe(events)
  assert.equal(encoder.write(events), undefined)
  return JSON.parse(String(encoder.end()))
}

t.test('a chunk is one line of JSON with the fields of the first, whatever the text holds', async t => {
  const ex = answering(true)
  ex.observe([usage])
  const nasty = 'a\n\ndata: [DONE]\n\nevent: x\r\n: \u2028\0\ud83d"\\'
  const encoder = openAiChat.encoder(ex)
  const head = `data: {"id":"chatcmpl-${ex.logId}","object":"chat.completion.chunk","created":${Math.floor(ex.at / 1000)},"model":"acme-large","system_fingerprint":null,"provider":"acme","choices":[`
  const first = encoder.write([{ type: 'start', id: 'x', model: 'y' }, text(nasty), usage, text('\ude00')])
  t.equal(
    first,
    `${head}{"index":0,"delta":{"role":"assistant","content":${JSON.stringify(nasty)}},"finish_reason":null}]}\n\n` +
      `${head}{"index":0,"delta":{"content":"\\ude00"},"finish_reason":null}]}\n\n`,
  )
  t.match(first, /\\ud83d/, 'S13: half a character stays what it is')
  t.equal(parsed(`${first}data: [DONE]\n\n`)[0]?.choices[0]?.delta.content, nasty)
  t.equal(encoder.write([finish()]), `${head}{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`)
  t.equal(encoder.write([usage, { type: 'tier', tier: 'flex' }]), undefined, 'nothing to see is no bytes')
  const end = String(encoder.end())
  t.ok(end.startsWith(`${head}],"usage":{"prompt_tokens":10,`) && end.endsWith('}\n\ndata: [DONE]\n\n'))
  t.equal(encoder.contentType, 'text/event-stream; charset=utf-8')
})

t.test('every chunk and a whole answer name the provider, and the fingerprint that it gave', async t => {
  const events = [{ type: 'start', fingerprint: 'fp_1' } as Event, text('a'), usage, finish()]
  const named = { system_fingerprint: 'fp_1', provider: 'acme' }
  const chunks = parsed(streamed([events]))
  t.equal(chunks.length, 3)
  for (const chunk of chunks) t.match(chunk, named)
  t.match(whole(events), named)
  t.match(whole([{ type: 'start' }, text('a'), finish()]), { system_fingerprint: null, provider: 'acme' })
  const late = parsed(streamed([[usage], events]))
  for (const chunk of late) t.match(chunk, named, 'also of an answer that began with something else')
  const failed = openAiChat.encoder(answering(true, { target: undefined })).fail(errors.truncated())
  t.match(
    parsed(String(failed))[1],
    { system_fingerprint: null, provider: '' },
    'a stream that never reached a provider',
  )
})

t.test('events become deltas of their choice, which has its role once, or one message', async t => {
  for (const [says, events, deltas, message] of answers) {
    const chunks = parsed(streamed([[...events, finish(0, 'length')]]))
    const seen = chunks.flatMap(({ choices }) => choices)
    t.strictSame(
      seen.map(({ index, delta }) => [index, delta]),
      [...deltas, [0, {}]],
      says,
    )
    t.strictSame(
      seen.map(choice => choice.finish_reason),
      [...deltas.map(() => null), 'length'],
      says,
    )
    const [choice] = whole([...events, finish(0, 'length')]).choices
    t.strictSame(
      choice,
      { index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason: 'length' },
      says,
    )
  }
  t.equal(
    whole([text('a'), finish(0, 'length'), finish()]).choices[0]?.finish_reason,
    'length',
    'the first reason counts',
  )
  const sparse = whole([
    text('b', 2),
    { type: 'tool', choice: 2, index: 1, id: 'c', name: 'f' },
    finish(2, 'tool_calls'),
  ])
  t.match(sparse.choices, [
    { index: 2, message: { content: 'b', tool_calls: [{ id: 'c' }] }, finish_reason: 'tool_calls' },
  ])
  t.equal(sparse.choices.length, 1, 'a choice that said nothing is left out')
  t.equal((sparse.choices[0]!.message.tool_calls as unknown[]).length, 1)
})

t.test('an answer to functions holds one call, in their form', async t => {
  const asking = (stream: boolean) => answering(stream, { request: { ...valid, stream, functions: [{ name: 'f' }] } })
  const tool = (index: number, more: object): Event => ({ type: 'tool', choice: 0, index, ...more })
  const events = [
    tool(0, { id: 'c', name: 'f' }),
    tool(0, { args: '{"k"' }),
    tool(1, { id: 'd', name: 'g', args: '{}' }),
    tool(0, { args: ':1}' }),
    finish(0, 'tool_calls'),
  ]
  const choices = parsed(streamed([events], asking(true))).flatMap(({ choices }) => choices)
  t.strictSame(
    choices.map(({ delta, finish_reason }) => [delta, finish_reason]),
    [
      [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } }, null],
      [{ function_call: { arguments: '{"k"' } }, null],
      [{ function_call: { arguments: ':1}' } }, null],
      [{}, 'function_call'],
    ],
  )
  const [choice] = whole(events, asking(false)).choices
  t.strictSame(choice?.message, {
    role: 'assistant',
    content: null,
    function_call: { name: 'f', arguments: '{"k":1}' },
  })
  t.equal(choice?.finish_reason, 'function_call')
  const [bare] = whole([tool(0, { id: 'c', name: 'f' }), finish(0, 'tool_calls')], asking(false)).choices
  t.strictSame(bare?.message.function_call, { name: 'f', arguments: '{}' })
  const [said] = whole([text('a'), finish()], asking(false)).choices
  t.strictSame(said, { index: 0, message: { role: 'assistant', content: 'a' }, logprobs: null, finish_reason: 'stop' })
})

t.test('log probabilities stand beside the message, and in chunks of their own', async t => {
  const rated = (token: string): Event => ({ type: 'logprobs', choice: 0, of: 'content', tokens: [{ token }] })
  const events = [rated('a'), text('a'), rated('b'), text('b'), finish()]
  const logprobs = (token: string) => ({ content: [{ token }], refusal: null })
  const choices = parsed(streamed([events])).flatMap(({ choices }) => choices)
  t.strictSame(
    choices.map(choice => [choice.delta, (choice as Json).logprobs]),
    [
      [{ role: 'assistant', content: null }, undefined],
      [{}, logprobs('a')],
      [{ content: 'a' }, undefined],
      [{}, logprobs('b')],
      [{ content: 'b' }, undefined],
      [{}, undefined],
    ],
  )
  const [choice] = whole(events).choices
  t.match(choice, { logprobs: { content: [{ token: 'a' }, { token: 'b' }], refusal: null } })
})

t.test('reasoning stands under one name where the endpoint is set so', async t => {
  const codec = openAiChat.compat.create({ reasoning_content: false })
  const events: Event[] = [{ type: 'reasoning', choice: 0, text: 'hm' }, text('a'), finish()]
  const [first] = parsed(streamed([events], answering(true), codec))
  t.strictSame(first?.choices[0]?.delta, { role: 'assistant', content: null, reasoning: 'hm' })
  t.strictSame(whole(events, answering(false), codec).choices[0]?.message, {
    role: 'assistant',
    content: 'a',
    reasoning: 'hm',
  })
})

/** A call of a delta, by its type. */
type Call = Json & { function?: { arguments: string }; custom?: { input: string } }

/** Adds up deltas without knowing any field: strings and lists are joined, calls by their index. */
function joined(deltas: readonly Json[]): Json {
  const message: Json = {}
  for (const [key, value] of deltas.flatMap(delta => Object.entries(delta))) {
    const before = message[key]
    if (key === 'tool_calls') {
      const calls = (before ?? []) as Json[]
      for (const { index, ...call } of value as ({ index: number } & Call)[]) {
        const known = calls[index] as Call | undefined
        if (!known) calls[index] = call
        else if (known.function) known.function.arguments += call.function?.arguments ?? ''
        else if (known.custom) known.custom.input += call.custom?.input ?? ''
      }
      message[key] = calls
    } else if (typeof before === 'string' && typeof value === 'string') message[key] = before + value
    else if (Array.isArray(before)) message[key] = [...before, ...(value as unknown[])]
    else message[key] = value
  }
  return message
}

t.test('what a client joins from the deltas can be sent back, and is read as the whole message is', async t => {
  const read = (message: unknown) => {
    const request = openAiChat.decode({ model: 'm', messages: [{ role: 'user', content: 'Hi' }, message] })
    const { content: _, tool_calls: calls, ...rest } = request.messages[1]! as Json & { tool_calls?: unknown[] }
    return { ...rest, images: undefined, annotations: undefined, calls: calls?.length }
  }
  for (const [says, events] of answers) {
    const all = [...events, finish()]
    const told = parsed(streamed([all])).flatMap(({ choices }) => choices)
    const deltas = told.flatMap(({ index, delta }) => (index === 0 ? [delta] : []))
    const { message } = whole(all).choices[0]!
    t.strictSame(read(joined(deltas)), read(message), says)
    const lists = deltas.flatMap(({ message_items, reasoning_details }) => [
      { ...(message_items !== undefined && { message_items }) },
      { ...(reasoning_details !== undefined && { reasoning_details }) },
    ])
    t.strictSame(read(joined([...deltas, ...lists])), read(message), `${says}, with its lists twice`)
  }
  const phased = (phase: string) => read({ role: 'assistant', content: 'a', phase })
  t.match(phased('commentaryfinal_answer'), { phase: 'final_answer' })
  t.match(phased('final_answercommentary'), { phase: 'commentary' })
})

t.test('a streamed thought is read however a client adds up its details', async t => {
  const read = (reasoning_details: Json[]) => {
    const message = { role: 'assistant', content: 'a', reasoning_details }
    return openAiChat.decode({ model: 'm', messages: [{ role: 'user', content: 'Hi' }, message] }).messages[1]!
      .reasoning_details
  }
  const detail = { type: 'reasoning.text', format: 'f-v1', block_index: 2 }
  const whole = { ...detail, text: 'hmm', signature: 's' }
  const rows: [says: string, details: Json[], read: Json[]][] = [
    [
      'in a list',
      [
        { ...detail, index: 2, text: 'hm' },
        { ...detail, index: 2, text: 'm' },
        { ...detail, index: 2, signature: 's' },
      ],
      [whole],
    ],
    [
      'as one entry, whose texts and numbers are sums',
      [{ ...whole, index: 2, format: 'f-v1f-v1f-v1', block_index: 6 }],
      [whole],
    ],
    ['the last piece alone, which no provider would take', [{ ...detail, index: 2, signature: 's' }], []],
    [
      'a thought without text',
      [{ ...detail, index: 2, text: '', signature: 's' }],
      [{ ...detail, text: '', signature: 's' }],
    ],
    ['a whole one', [whole], [whole]],
    ['an empty signature, which is none', [{ ...whole, signature: '' }], [{ ...whole, signature: null }]],
  ]
  for (const [says, details, expected] of rows) t.same(read(details), expected, says)
})

/** Puts the chunks together as a client does. */
function folded(chunks: readonly Chunk[]): Map<number, Json> {
  const messages = new Map<number, Json>()
  const append = (to: Json, key: string, more: unknown) => {
    if (typeof more === 'string') to[key] = `${to[key] ?? ''}${more}`
  }
  for (const { index, delta, finish_reason } of chunks.flatMap(chunk => chunk.choices)) {
    const message = messages.get(index) ?? { calls: [], images: [] }
    messages.set(index, message)
    for (const key of ['content', 'reasoning', 'refusal']) append(message, key, delta[key])
    for (const call of (delta.tool_calls ?? []) as { index: number; id?: string; function: Json }[]) {
      const calls = message.calls as Json[]
      calls[call.index] ??= { id: call.id, name: call.function.name }
      append(calls[call.index]!, 'arguments', call.function.arguments)
    }
    ;(message.images as unknown[]).push(...((delta.images ?? []) as unknown[]))
    message.finish ??= finish_reason
  }
  return messages
}

const choices = fc.nat(2)
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    type: fc.constantFrom('text', 'refusal', 'reasoning'),
    choice: choices,
    text: fc.string({ unit: 'binary-ascii', minLength: 1 }),
  }),
  fc.record({
    type: fc.constant('tool'),
    choice: choices,
    index: fc.constant(0),
    id: fc.constant('c'),
    name: fc.constant('f'),
    args: fc.string({ minLength: 1 }),
  }),
  fc.record({ type: fc.constant('image'), choice: choices, url: fc.constantFrom('data:a', 'data:b') }),
  fc.constant(usage),
) as fc.Arbitrary<Event>

t.test('a stream is the same bytes however its events were batched, and says what the whole answer says', async t => {
  const sameBytes = fc.property(fc.array(anyEvent), fc.array(fc.nat(3)), (events, cuts) => {
    const ex = answering(true)
    const batches = [...cuts.map(length => events.splice(0, length)), events]
    return (
      streamed(batches, ex) ===
      streamed([batches.flat()], Object.assign(answering(true), { logId: ex.logId, at: ex.at, id: ex.id }))
    )
  })
  t.doesNotThrow(() => fc.assert(sameBytes))
  const sameWords = fc.property(fc.array(anyEvent, { minLength: 1 }), events => {
    const seen = [...new Set(events.flatMap(event => ('choice' in event ? [event.choice] : [])))].sort()
    const all = [...events, ...seen.map(choice => finish(choice))]
    const messages = folded(parsed(streamed([all])))
    const { choices } = whole(all)
    return (
      JSON.stringify(choices.map(choice => choice.index)) === JSON.stringify(seen) &&
      choices.every(({ index, message, finish_reason }) => {
        const other = messages.get(index)!
        const calls = ((message.tool_calls ?? []) as { function: Json }[]).map(call => call.function.arguments)
        return (
          (message.content ?? '') === (other.content ?? '') &&
          message.reasoning === other.reasoning &&
          message.refusal === other.refusal &&
          JSON.stringify(calls) === JSON.stringify((other.calls as Json[]).map(call => call.arguments)) &&
          JSON.stringify(message.images ?? []) === JSON.stringify(other.images) &&
          finish_reason === other.finish
        )
      })
    )
  })
  t.doesNotThrow(() => fc.assert(sameWords))
})

t.test('the last chunk and the whole answer carry the same usage, cost and routing', async t => {
  const prices = {
    prompt: '1',
    completion: '2',
    input_cache_read: '0.1',
    input_cache_write: '1.25',
    request: '0.02',
    web_search: '0.01',
  }
  const mapping = { price: flat(prices) }
  const used: Event = {
    type: 'usage',
    usage: {
      prompt: 1000,
      completion: 500,
      input_cache_read: 200,
      input_cache_write: 100,
      input_cache_write_1h: 50,
      internal_reasoning: 300,
      input_audio: 7,
      input_video: 9,
      web_search: 1,
    },
  }
  const told = (stream: boolean): Chunk => {
    const ex = answering(stream, { target: target({ mapping, secret: 'sk-1' }), headers: { 'x-request-id': 'mine' } })
    Object.assign(ex.requested, { model: 'acme-large', provider: 'acme' })
    ex.answer.servedTier = 'flex'
    const down = target({ provider: { id: 'down' } })
    ex.attempts.push({ target: down, status: 503, succeeded: false, errorType: 'upstream_error' } as Attempt)
    const times = { durationMs: 0, startedMs: 0 }
    ex.attempts.push({ target: ex.target!, status: 200, succeeded: true, errorType: 'none', reason: null, ...times })
    const events = [text('a'), used, finish()]
    const answer = stream ? parsed(streamed([events], ex)).at(-1)! : (whole(events, ex) as unknown as Chunk)
    t.equal(answer.metadata?.log_id, ex.logId)
    return answer
  }
  const last = told(true)
  t.strictSame(last.choices, [])
  const answer = told(false)
  t.strictSame({ ...last.metadata, log_id: '' }, { ...answer.metadata, log_id: '' })
  t.strictSame(last.usage, answer.usage)
  const details = answer.usage?.cost_details as Record<string, number>
  const shares = ['upstream_inference_prompt_cost', 'upstream_inference_completions_cost', 'request_cost']
  const nano = (name: string) => Math.round(details[name]! * 1e9)
  t.equal(
    shares.reduce((sum, name) => sum + nano(name), 0),
    nano('upstream_inference_cost'),
    'what the provider asks for holds the price of the request',
  )
  t.strictSame(answer.usage, {
    prompt_tokens: 1000,
    completion_tokens: 500,
    total_tokens: 1500,
    reasoning_tokens: 300,
    prompt_tokens_details: {
      cached_tokens: 200,
      cache_write_tokens: 150,
      cache_creation_tokens: 150,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 50 },
      audio_tokens: 7,
      video_tokens: 9,
    },
    completion_tokens_details: { reasoning_tokens: 300 },
    cost: 0.0318575,
    cost_details: {
      upstream_inference_cost: 0.0218575,
      upstream_inference_prompt_cost: 0.0008575,
      upstream_inference_completions_cost: 0.001,
      total_cost: 0.0318575,
      input_cost: 0.00065,
      output_cost: 0.001,
      cached_input_cost: 0.00002,
      cache_write_input_cost: 0.0001875,
      request_cost: 0.02,
      web_search_cost: 0.01,
      image_input_cost: 0,
      image_output_cost: 0,
      audio_input_cost: 0,
      data_storage_cost: null,
    },
  })
  t.strictSame(answer.metadata, {
    request_id: 'mine',
    log_id: answer.metadata?.log_id,
    requested_model: 'acme-large',
    requested_provider: 'acme',
    used_model: 'acme-large',
    used_provider: 'acme',
    underlying_used_model: 'acme-large-2026',
    used_region: null,
    organization_id: 'org-1',
    project_id: 'project-1',
    discount: null,
    used_service_tier: 'flex',
    routing: [
      {
        provider: 'down',
        model: 'acme-large',
        status_code: 503,
        error_type: 'upstream_error',
        succeeded: false,
        credentialSource: 'platform',
      },
      {
        provider: 'acme',
        model: 'acme-large',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        apiKeyHash: 'f1',
        credentialSource: 'platform',
      },
    ],
  })
})

t.test('an unknown price is null, an estimate is called one, and a replay costs nothing', async t => {
  const unpriced = whole([text('abcde'), finish()], answering(false, { target: target() }))
  t.match(unpriced.usage, {
    prompt_tokens: 1,
    completion_tokens: 2,
    info: /estimated/,
    cost: null,
    cost_details: { total_cost: null, input_cost: null, upstream_inference_cost: 0 },
  })
  const ex = answering(false, { target: undefined })
  ex.answer.cached = { provider: 'p', model: 'm', externalId: 'e', logId: 'first', at: 5_000 }
  const replay = whole([text('a'), usage, finish()], ex)
  t.match(replay.usage, { prompt_tokens: 10, cost: 0, cost_details: { total_cost: 0, data_storage_cost: 0 } })
  t.match(replay.metadata, {
    cached: true,
    used_model: 'm',
    used_provider: 'p',
    underlying_used_model: 'e',
    routing: [],
  })
  t.match(replay, { id: 'chatcmpl-first', created: 5, model: 'm', provider: 'p' }, 'it is the first answer')
  t.match(replay.metadata, { request_id: ex.id, log_id: ex.logId }, 'to another request')
  t.notOk('cached' in (unpriced.metadata as Json))
})

t.test('a stream that breaks says so once, with what was used, and ends', async t => {
  const ex = answering(true)
  ex.observe([text('abcdefgh')])
  const encoder = openAiChat.encoder(ex)
  const said = `${encoder.write([text('abcdefgh')])}${encoder.fail(errors.truncated())}`
  const [first, error, last, ...rest] = parsed(said)
  t.equal(first?.choices[0]?.delta.content, 'abcdefgh')
  t.strictSame(error, openAiChat.error(errors.truncated()))
  t.match(error, {
    error: { type: 'upstream_error', code: 'upstream_stream_truncated', param: null, message: /ended/ },
  })
  t.match(last, { choices: [], usage: { completion_tokens: 2, info: /estimated/ }, metadata: { request_id: ex.id } })
  t.strictSame(rest, [])
  const cited = openAiChat.encoder(answering(true))
  cited.write([text('a'), { type: 'source', choice: 0, url: 'https://a', start: 0, end: 1 }])
  const [annotated] = parsed(String(cited.fail(errors.truncated())))
  t.match(annotated?.choices[0]?.delta, { annotations: [{ url_citation: { url: 'https://a', end_index: 1 } }] })
  t.equal(openAiChat.encoder(answering(false)).fail(errors.truncated()), undefined, 'a whole answer has no band')
})

t.test('a local endpoint answers with its value, or with bytes that are ready', async t => {
  const answer = (event: Event) => {
    const encoder = json.encoder(exchange())
    t.equal(encoder.write([event]), undefined)
    return encoder.end()
  }
  t.equal(answer({ type: 'result', value: { a: [1] } }), '{"a":[1]}')
  const bytes = Buffer.from('{}')
  t.equal(answer({ type: 'result', bytes }), bytes)
  t.match(
    thrown(() => json.decode({}, exchange())),
    { status: 500 },
  )
})
