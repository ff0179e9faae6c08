/**
 * What the wires `gemini.generate` and `gemini.vertex` make of answers. `test/golden/gemini` holds recorded streams with
 * their events, and one `*.table.json` per kind of edge case. Ids: docs/contributing/edge-cases.md.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { unitsOf } from '../../plugins/gemini/grounding.ts'
import { plugin } from '../../plugins/gemini.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import { JsonFraming } from '../../src/upstream/framing/json.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { Fold } from '../../src/wire/fold.ts'
import { checkErrors } from './golden-checks.ts'
import { contentOf, decodeWith, errorsOf, golden, type Json, type Mode, usageOf } from './golden-kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

interface Turn {
  role: string
  parts: Json[]
}

const [studio, vertex] = plugin.wires
const { read, names, table } = golden('gemini')

/** A model of the third generation. */
const third = (id = 'acme') =>
  target({ provider: { id }, mapping: { supports: new Set(['reasoning']), reasoningEfforts: ['low', 'high'] } })

const decode = (mode: Mode, payloads: readonly unknown[], to = third()) =>
  decodeWith(vertex!.decoder(mode, to), payloads)
/** As it goes through production: bytes in any chunks, framed, decoded. */
function streamed(chunks: readonly Buffer[], to = third()): Event[] {
  const framing = new SseFraming()
  const decoder = studio!.decoder('stream', to)
  const frames = [...chunks.flatMap(chunk => framing.push(chunk)), ...framing.end()]
  return [...frames.flatMap(frame => decoder.frame(frame)), ...decoder.end()]
}

const recordings = names('.sse').map(name => ({
  name,
  sse: Buffer.from(read(`${name}.sse`)),
  events: JSON.parse(read(`${name}.events.json`)) as Event[],
}))

t.test('recorded streams give the expected events, however their bytes are cut', async t => {
  for (const { name, sse, events } of recordings) {
    t.ok(sse.includes('\r\n\r\n'), 'S3 lines end as this provider ends them')
    t.same(streamed([sse]), events, name)
    t.same(streamed([...sse].map(byte => Buffer.of(byte))), events, `${name}: S15 byte by byte`)
    t.same(streamed([sse.subarray(0, -4)]), events, `${name}: S11 without its last blank line`)
    const cuts = fc.array(fc.integer({ min: 0, max: sse.length }), { maxLength: 12 })
    const holds = fc.property(cuts, at => {
      const ends = [0, ...at.sort((a, b) => a - b), sse.length]
      assert.deepEqual(streamed(ends.slice(1).map((end, i) => sse.subarray(ends[i], end))), events)
    })
    t.doesNotThrow(() => fc.assert(holds, { numRuns: 60 }), name)
  }
})

t.test('recorded streams give the same answer as one JSON list, and none when they are cut short', async t => {
  for (const { name, sse, events } of recordings) {
    const chunks = [...sse.toString().matchAll(/^data: ([^\r\n]*)\r$/gm)].map(([, data]) => JSON.parse(data!))
    const framing = new JsonFraming()
    framing.push(Buffer.from(JSON.stringify(chunks)))
    const decoder = studio!.decoder('unary', third())
    const whole = events.filter(({ type }) => type !== 'progress')
    t.same([...framing.end().flatMap(frame => decoder.frame(frame)), ...decoder.end()], whole, `${name}: S23`)

    const cut = decode('stream', chunks.slice(0, -1))
    t.match(errorsOf(cut), [{ code: 'upstream_stream_truncated', failover: true }], `${name}: S10`)
    t.equal(cut.at(-1)?.type, 'error')
    t.notOk(cut.some(({ type }) => type === 'finish'))
  }
})

t.test('streams that are not plain', async t => {
  for (const { name, mode = 'stream', payloads, events } of table<{
    mode?: Mode
    payloads: unknown[]
    events: Event[]
  }>('streams')) {
    t.same(contentOf(decode(mode, payloads)), events, name)
  }
})

t.test('sources have places where a search was asked for; otherwise the text is not kept for them', async t => {
  const grounded = {
    ...part('Cold', 'STOP').candidates[0],
    groundingMetadata: {
      groundingChunks: [{ web: { uri: 'u' } }],
      groundingSupports: [{ segment: { endIndex: 4, text: 'Cold' }, groundingChunkIndices: [0] }],
    },
  }
  const sourceOf = (asked: Json) => {
    const input = { model: 'm', messages: [], ...asked } as ChatRequest
    const events = decodeWith(studio!.decoder('unary', third(), input), [{ candidates: [grounded] }])
    return events.find(({ type }) => type === 'source')
  }
  const placed = { type: 'source', choice: 0, url: 'u', start: 0, end: 4 }
  t.strictSame(sourceOf({ web_search: true }), placed)
  t.strictSame(sourceOf({ tools: [{ type: 'web_search' }] }), placed)
  t.strictSame(sourceOf({}), { type: 'source', choice: 0, url: 'u' })
})

t.test('offsets in bytes are those of the same text in units, or none', async t => {
  const same = fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), text => {
    const offsets = Array.from({ length: Buffer.byteLength(text) + 3 }, (_, at) => at - 1)
    const units = unitsOf(text, offsets.reverse())
    const expected = new Map<number, number>()
    for (let at = 0; at <= text.length; at++) {
      const head = text.slice(0, at)
      if (!/[\ud800-\udbff]$/.test(head)) expected.set(Buffer.byteLength(head), at)
    }
    return offsets.every(offset => units.get(offset) === expected.get(offset))
  })
  t.doesNotThrow(() => fc.assert(same, { seed: 20261201 }))
})

t.test('a failure becomes one error event, the last', async t => {
  for (const { name, mode = 'stream', payloads, error } of table<{ mode?: Mode; payloads: unknown[]; error: Json }>(
    'failures',
  )) {
    const events = decode(mode, payloads)
    t.match(errorsOf(events), [error], name)
    t.equal(errorsOf(events).length, 1, `${name}: reported once`)
    t.equal(events.at(-1)?.type, 'error', `${name}: nothing follows it`)
  }
})

t.test('refusals with a status say whose fault they are', async t => {
  const to = target({ secret: 'secret-0123456789' })
  checkErrors(t, { wire: studio!, table }, to)
  const daily = table<{ body: unknown }>('errors').find(({ name }) => name.startsWith('E6'))!
  t.equal(studio!.error(429, JSON.stringify(daily.body), to).retryAfterMs, undefined, 'waiting brings no quota back')
  const echoed = { error: { code: 403, message: 'no secret-0123456789', status: 'PERMISSION_DENIED' } }
  t.match(errorsOf(decode('stream', [echoed], to)), [{ detail: 'no ***' }], 'E13 inside an answer')
})

const part = (text: string, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text }] }, ...(finishReason && { finishReason }) }],
})

t.test('a start event opens an answer, once, with what is known of it', async t => {
  const starts = (...chunks: Json[]) => decode('stream', chunks).filter(({ type }) => type === 'start')
  const first = { ...part('a'), responseId: 'x', modelVersion: 'm' }
  t.same(starts(first, { ...part('b', 'STOP'), responseId: 'y' }), [{ type: 'start', id: 'x', model: 'm' }])
  t.same(starts(part('a', 'STOP')), [{ type: 'start' }], 'C34')
  t.same(starts({ error: { code: 500, message: 'm' } }), [])
})

t.test('C15 ids that we make differ from answer to answer', async t => {
  const answer = (responseId?: string) => ({
    ...(responseId && { responseId }),
    candidates: [{ content: { parts: [{ functionCall: { name: 'f' } }] }, finishReason: 'STOP' }],
  })
  const ids = [answer(), answer(), answer('a-1'), answer('a-2')].flatMap(body =>
    decode('unary', [body]).flatMap(event => (event.type === 'tool' ? [event.id] : [])),
  )
  t.equal(new Set(ids).size, 4)
  for (const id of ids) t.match(id, /^call_[A-Za-z0-9]{2,24}_0_0$/, 'R4 fits every provider')
})

t.test('the served tier is reported once, under the name that OpenAI gives it', async t => {
  const served = (usageMetadata: Json, to = third()) =>
    decode(
      'stream',
      [
        { ...part('a'), usageMetadata },
        { ...part('', 'STOP'), usageMetadata },
      ],
      to,
    ).flatMap(event => (event.type === 'tier' ? [event.tier] : []))
  t.same(served({ trafficType: 'ON_DEMAND' }), ['default'])
  t.same(served({ trafficType: 'ON_DEMAND_FLEX' }), ['flex'])
  t.same(served({ trafficType: 'ON_DEMAND_PRIORITY' }), ['priority'])
  t.same(served({ serviceTier: 'standard' }), ['default'])
  t.same(served({ serviceTier: 'flex' }), ['flex'])
  for (const other of [{}, { trafficType: 'PROVISIONED_THROUGHPUT' }, { trafficType: 'constructor' }]) {
    t.same(served(other), [])
  }
})

t.test('C3 C35 the last report counts, streamed and whole alike, each of its parts by itself', async t => {
  const last = {
    promptTokenCount: 29,
    toolUsePromptTokenCount: 11,
    cachedContentTokenCount: 8,
    candidatesTokenCount: 15,
    thoughtsTokenCount: 100,
    totalTokenCount: 999,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 9 },
      { modality: 'AUDIO', tokenCount: 20 },
      { modality: 'VIDEO', tokenCount: 7 },
    ],
    cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 5 }],
    candidatesTokensDetails: [
      { modality: 'IMAGE', tokenCount: 12 },
      { modality: 'AUDIO', tokenCount: 3 },
    ],
  }
  const expected = {
    prompt: 40,
    completion: 115,
    input_cache_read: 8,
    internal_reasoning: 100,
    input_audio: 20,
    input_video: 7,
    input_audio_cache_read: 5,
    image_output: 12,
    output_audio: 3,
  }
  const early = { promptTokenCount: 29, candidatesTokenCount: 90, thoughtsTokenCount: 244 }
  const chunks = [
    { ...part('a'), usageMetadata: { trafficType: 'ON_DEMAND' } },
    { ...part('b'), usageMetadata: early },
    { ...part('', 'STOP'), usageMetadata: last },
    { usageMetadata: { trafficType: 'ON_DEMAND' } },
  ]
  t.same(usageOf(decode('stream', chunks)), expected)
  t.same(usageOf(decode('unary', [{ ...part('ab', 'STOP'), usageMetadata: last }])), expected)

  const told = decode('stream', chunks.slice(0, 2))
  t.same(usageOf(told), { prompt: 29, completion: 334, internal_reasoning: 244 }, 'an answer cut short reports too')
  const running = studio!.decoder('stream', third())
  t.match(running.frame({ data: JSON.stringify(chunks[1]) }), [{ type: 'start' }, { usage: { prompt: 29 } }])

  const whole = (usageMetadata: unknown) => usageOf(decode('unary', [{ ...part('', 'STOP'), usageMetadata }]))
  t.same(
    whole({ promptTokenCount: 9, totalTokenCount: 9 }),
    { prompt: 9, completion: 0 },
    'no count is a count of none',
  )
  t.same(
    whole({ promptTokenCount: 2, cachedContentTokenCount: 8 }),
    { prompt: 10, completion: 0, input_cache_read: 8 },
    'C37',
  )
  for (const nothing of [null, undefined, {}, 3]) t.same(whole(nothing), {}, 'C4')
})

t.test('searches are counted by query, and by answer for older models', async t => {
  const grounded = (queries: string[], index = 0) => ({
    candidates: [
      {
        ...part('a', 'STOP').candidates[0],
        index,
        groundingMetadata: { webSearchQueries: queries, groundingChunks: [] },
      },
    ],
  })
  const chunks = [grounded(['a', 'b']), grounded(['a'], 1), grounded(['a', 'b'])]
  t.same(usageOf(decode('stream', chunks)), { web_search: 3 })
  t.same(usageOf(decode('stream', chunks, target())), { web_search: 1 })
  const unsaid = { groundingChunks: [{ web: { uri: 'u' } }] }
  const cited = { candidates: [{ ...part('a', 'STOP').candidates[0], groundingMetadata: unsaid }] }
  t.same(usageOf(decode('unary', [cited])), { web_search: 1 }, 'who cites has searched')
  t.same(usageOf(decode('unary', [part('a', 'STOP')])), {})
})

/** What a client sends back of an answer: as it was folded, or as its deltas came. */
function replayOf(events: Event[], folded: boolean): Json {
  const fold = new Fold()
  fold.add(events)
  const { text, tools, images, details, native } = fold.choices[0]!
  const pieces = events.flatMap(event => {
    if (event.type !== 'reasoning' || event.format === undefined) return []
    const { text, format, block: block_index, signature, data } = event
    return [{ type: data ? 'reasoning.encrypted' : 'reasoning.text', text, format, block_index, signature, data }]
  })
  return {
    role: 'assistant',
    content: text || null,
    images: images.map(url => ({ type: 'image_url', image_url: { url } })),
    reasoning_details: folded ? details : pieces,
    provider_native_blocks: native,
    tool_calls: tools.map(({ id, name, args, signature }) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
      ...(signature && { extra_content: { vendor: { thought_signature: signature } } }),
    })),
  }
}

t.test('signatures survive three turns byte for byte, for the provider that made them alone', async t => {
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }
  for (const folded of [true, false]) {
    const messages: Json[] = [{ role: 'user', content: 'Hi' }]
    const made: Json[][] = []
    const send = (to: Target) => {
      const request = { model: 'acme-large', messages: [...messages] }
      const sent = studio!.encode(deepFreeze(structuredClone(request)) as unknown as ChatRequest, to, false)
      return sent.body.contents as Turn[]
    }
    const drawing = () => {
      const to = third()
      return { ...to, mapping: { ...to.mapping, supports: new Set([...to.mapping.supports, 'vision' as const]) } }
    }
    for (let turn = 0; turn < 3; turn++) {
      const parts: Json[] = [
        { toolCall: { id: `n${turn}` }, thoughtSignature: `nat${turn}+/==` },
        { text: `Look 🙂 ${turn}`, thoughtSignature: `txt${turn}+/==:é` },
        { ...image, thoughtSignature: `img${turn}+/==` },
        { functionCall: { id: `x${turn}`, name: 'f', args: { turn } }, thoughtSignature: `call${turn}+/==` },
        { functionCall: { id: `y${turn}`, name: 'f', args: {} } },
      ]
      made.push(parts)
      const thought = { text: 'hm', thought: true }
      const answer = { candidates: [{ content: { parts: [thought, ...parts] }, finishReason: 'STOP' }] }
      messages.push(replayOf(decode('unary', [answer]), folded))
      for (const id of ['y', 'x']) messages.push({ role: 'tool', tool_call_id: `${id}${turn}`, content: 'ok' })
      const sent = send(drawing()).filter(({ role }) => role === 'model')
      t.equal(JSON.stringify(sent.map(({ parts }) => parts)), JSON.stringify(made), `turn ${turn}`)
    }
    const elsewhere = JSON.stringify(send(target({ provider: { id: 'other' } })))
    t.notMatch(elsewhere, /(nat|txt|img|call)\d|toolCall|thoughtSignature/)
    const newer = JSON.stringify(send(third('other')))
    t.equal(newer.match(/"thoughtSignature":"skip_thought_signature_validator"/g)?.length, 3, 'R14 one for each turn')
    t.equal(newer.match(/thoughtSignature/g)?.length, 3)
  }
})

t.test('a signature that ends a stream of text goes back on that text', async t => {
  const chunks = [
    part('Hel'),
    part('lo'),
    { candidates: [{ content: { parts: [{ text: '', thoughtSignature: 's' }] } }] },
  ]
  const answer = decode('stream', [...chunks, part('', 'STOP')])
  const messages = [{ role: 'user', content: 'Hi' }, replayOf(answer, true), { role: 'user', content: 'Go' }]
  const { body } = studio!.encode({ model: 'm', messages } as unknown as ChatRequest, third(), false)
  t.same((body.contents as Turn[])[1], { role: 'model', parts: [{ text: 'Hello', thoughtSignature: 's' }] })
})
