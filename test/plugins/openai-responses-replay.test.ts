/**
 * Conversations over the wire `openai.responses`: what an answer gave besides text comes back in its place, to the
 * provider that gave it alone. The simulated provider refuses what the real one refuses.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { plugin } from '../../plugins/openai-responses.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Json } from '../../src/json/json.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { exchange, principal } from '../core/kit.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

const wire = plugin.wires[0]!
const hi = { role: 'user', content: 'Hi' }
/** Takes all that the interface has. */
const mapping = { supports: new Set(['reasoning', 'tools', 'tool_search', 'web_search'] as const) }
const acme = target({ mapping })
const other = target({ mapping, provider: { id: 'other' } })
const encode = (request: Json, to = acme, stream = false) =>
  wire.encode(deepFreeze({ model: 'acme-large', ...request }) as unknown as ChatRequest, to, stream)
const itemsOf = (messages: Json[], to = acme) =>
  encode({ messages: structuredClone(messages) }, to).body.input as Json[]
const plain = (value: unknown) => JSON.parse(JSON.stringify(value))

const encoderFor = (stream: boolean) =>
  openAiChat.encoder(exchange({ request: { model: 'acme-large', messages: [hi], stream }, target: acme, principal }))

/** The message of a whole answer, which a client sends back as it is. */
function wholeMessage(events: readonly Event[]): Json {
  const encoder = encoderFor(false)
  encoder.write(events)
  return JSON.parse(String(encoder.end())).choices[0].message
}

/** The message that a client puts together from a stream: texts joined, calls by index, lists one after another. */
function gatheredMessage(events: readonly Event[]): Json {
  const message: Json & { tool_calls?: Json[] } = { role: 'assistant', content: '' }
  for (const { data } of new SseFraming().push(Buffer.from(String(encoderFor(true).write(events) ?? '')))) {
    const { delta } = JSON.parse(data).choices[0]
    message.content += delta.content ?? ''
    if (delta.phase) message.phase = delta.phase
    if (delta.refusal) message.refusal = `${message.refusal ?? ''}${delta.refusal}`
    for (const key of ['reasoning_details', 'provider_native_blocks']) {
      if (delta[key]) message[key] = [...((message[key] as Json[]) ?? []), ...delta[key]]
    }
    for (const { index, function: called, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= []
      const known = message.tool_calls[index] as { function: Json } | undefined
      if (known) known.function.arguments += called.arguments
      else message.tool_calls[index] = { ...call, function: called }
    }
  }
  return message
}

const recorded = (name: string) => {
  const sse = readFileSync(new URL(`../golden/openai-responses/${name}.sse`, import.meta.url), 'utf8')
  const frames = new SseFraming().push(Buffer.from(sse))
  const { response } = JSON.parse(frames.at(-1)!.data)
  return {
    events: decodeAll(
      wire.decoder('stream', acme),
      frames.map(({ data }) => data),
    ),
    output: response.output as Json[],
  }
}

/** An item as it goes back: without what only an answer has. */
function sentBack(item: Json): Json {
  const { id, status: _, content, ...rest } = item
  switch (item.type) {
    case 'reasoning':
      return { id, ...rest }
    case 'message': {
      const parts = (content as Json[]).map(({ logprobs, annotations, ...part }) =>
        annotations ? { ...part, annotations: [] } : part,
      )
      return { ...rest, status: 'completed', content: parts }
    }
    case 'function_call':
      return rest
    default:
      return item
  }
}

const resultsOf = (message: Json): Json[] =>
  ((message.tool_calls ?? []) as Json[]).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'ok' }))

t.test('all items of an answer come back in their order, however the client read it', async t => {
  for (const name of ['reasoning-tools', 'web-search', 'tool-search', 'image']) {
    const { events, output } = recorded(name)
    const expected = output.filter(({ type }) => type !== 'image_generation_call').map(sentBack)
    for (const message of [wholeMessage(events), gatheredMessage(events)]) {
      const messages = [hi, message, ...resultsOf(message)]
      const items = itemsOf(messages).slice(1)
      t.strictSame(plain(items.slice(0, expected.length)), expected, name)
      t.strictSame(
        items.slice(expected.length).map(({ type }) => type),
        resultsOf(message).map(() => 'function_call_output'),
      )
      const own = /encrypted|reasoning|_search_|compaction|namespace|position/
      t.notMatch(JSON.stringify(itemsOf(messages, other)), own, `${name}, to another provider`)
    }
  }
})

t.test('reasoning that led to nothing, or to what was left out, does not come back', async t => {
  const item = { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'g' }
  const message = wholeMessage(
    decodeAll(wire.decoder('unary', acme), [JSON.stringify({ output: [item], status: 'incomplete' })]),
  )
  t.match(message, { reasoning_details: [{ type: 'reasoning.encrypted', format: 'openai-responses-v1' }] })
  t.strictSame(
    itemsOf([hi, message, hi]).map(({ type }) => type),
    ['message', 'message'],
  )
})

t.test('reasoning without encrypted content comes back as the text that it was', t => {
  const content = [
    { type: 'reasoning_text', text: 'Two ' },
    { type: 'reasoning_text', text: 'parts' },
  ]
  const thought = { type: 'reasoning', id: 'rs_1', summary: [], content }
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
  const spoken = { type: 'message', content: [{ type: 'output_text', text: 'a' }] }
  const deltas = content.map(({ text: delta }, content_index) => ({
    type: 'response.reasoning_text.delta',
    output_index: 0,
    content_index,
    delta,
  }))
  for (const next of [call, spoken]) {
    for (const last of [{}, { encrypted_content: null }, { encrypted_content: '' }, { status: 'completed' }]) {
      const item = { ...thought, ...last }
      const response = { object: 'response', status: 'completed', output: [item, next] }
      const streams = {
        whole: [response],
        streamed: [
          ...deltas,
          { type: 'response.output_item.done', output_index: 0, item },
          { type: 'response.output_item.done', output_index: 1, item: next },
          { type: 'response.completed', response },
        ],
        'told at its end': [...deltas, { type: 'response.completed', response }],
      }
      for (const [name, frames] of Object.entries(streams)) {
        const raw = frames.map(frame => JSON.stringify(frame))
        const events = decodeAll(wire.decoder(name === 'whole' ? 'unary' : 'stream', acme), raw)
        for (const message of [wholeMessage(events), gatheredMessage(events)]) {
          const says = `${name}, ${next.type}, ${JSON.stringify(last)}`
          const messages = [hi, message, ...resultsOf(message), hi]
          t.strictSame(plain(itemsOf(messages)[1]), thought, says)
          t.notMatch(JSON.stringify(itemsOf(messages, other)), /reasoning/, `${says}, to another provider`)
        }
      }
    }
  }
  t.end()
})

/** Sends a body to a provider, and reads its answer as the terminal would. */
async function ask(url: string, body: Json, to = acme) {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-1' }
  const response = await fetch(`${url}/responses`, { method: 'POST', headers, body: JSON.stringify(body) })
  const bytes = Buffer.from(await response.arrayBuffer())
  const { framing, mode } = framingFor(response.headers.get('content-type') ?? undefined, body.stream === true)
  const frames = [...framing.push(bytes), ...framing.end()].map(({ data }) => data)
  return { status: response.status, text: bytes.toString(), events: decodeAll(wire.decoder(mode, to), frames) }
}

/** How the simulated provider encrypts its reasoning. */
const encrypted = (text: string): string => createHash('sha256').update(`signed:${text}`).digest('base64')
const first: Step = {
  reasoning: ['I ', 'think 🙂'],
  chunks: ['Let me ', 'look'],
  toolCalls: [{ name: 'f', args: { k: 1 } }, { name: 'f' }],
}
const tools = [{ type: 'function', function: { name: 'f' } }]

t.test('encrypted reasoning survives three turns byte for byte, for the provider that made it alone', async t => {
  const upstream = await startUpstream(t)
  for (const stream of [false, true]) {
    const prefix = stream ? 'streamed' : 'whole'
    await upstream.script(prefix, [
      first,
      { ...first, reasoning: 'Again' },
      { reasoning: 'Done', text: 'It is 20.' },
      {},
    ])
    const messages: Json[] = [hi]
    const converse = async (to = acme) => {
      const request = { messages: structuredClone(messages), tools, reasoning_effort: 'high' }
      const { status, text, events } = await ask(upstream.url(prefix), encode(request, to, stream).body, to)
      t.equal(status, 200, status === 200 ? `${prefix}: accepted` : text)
      return events
    }
    for (let turn = 0; turn < 3; turn++) {
      const events = await converse()
      t.match(events.at(-1), { type: 'finish', reason: turn < 2 ? 'tool_calls' : 'stop' })
      const message = stream ? gatheredMessage(events) : wholeMessage(events)
      messages.push(message, ...resultsOf(message))
    }
    messages.push(hi)
    await converse()
    await converse(other)
    const bodies = (await upstream.record(prefix)).map(({ body }) => (body as { input: Json[] }).input)
    const elsewhere = bodies.pop()!
    t.strictSame(
      bodies.map(input => input.flatMap(item => (item.type === 'reasoning' ? [item.encrypted_content] : []))),
      [0, 1, 2, 3].map(turns => ['I think 🙂', 'Again', 'Done'].slice(0, turns).map(encrypted)),
    )
    for (const [turn, input] of bodies.slice(1).entries()) {
      const before = bodies[turn]!
      t.strictSame(input.slice(0, before.length), before, `${prefix}: what turn ${turn} was begins turn ${turn + 1}`)
    }
    t.notMatch(JSON.stringify(elsewhere), /reasoning|encrypted/)
    t.match(elsewhere.at(-1), { role: 'user' }, 'all else of the conversation is there')
  }
})

t.test('the simulated provider sends its errors in both shapes, and each is reported once', async t => {
  const upstream = await startUpstream(t)
  const rows: [Step, Json][] = [
    [{ fault: 'error-first-event', status: 429 }, { code: 'upstream_rate_limited' }],
    [{ fault: 'error-event', afterChunks: 1, text: 'abcd' }, { code: 'upstream_error' }],
    [
      {
        fault: 'error-event',
        afterChunks: 1,
        text: 'abcd',
        body: { code: 'insufficient_quota', message: 'none left' },
      },
      { code: 'upstream_quota', message: 'none left' },
    ],
    [{ fault: 'truncate', text: 'abcd' }, { code: 'upstream_stream_truncated' }],
    [{ fault: 'error-in-200' }, { code: 'upstream_error' }],
  ]
  for (const [step, error] of rows) {
    await upstream.script('/', [step])
    const { events } = await ask(upstream.url(), encode({ messages: [hi] }, acme, true).body)
    const found = events.flatMap(event => (event.type === 'error' ? [event.error] : []))
    t.match(found, [error], `${step.fault}`)
    t.equal(found.length, 1)
  }
  await upstream.script('/', [
    { text: 'abcd', finish: 'length', usage: { prompt: 9, completion: 4, cached: 3, written: 2, reasoning: 1 } },
  ])
  for (const stream of [false, true]) {
    const { events } = await ask(upstream.url(), encode({ messages: [hi] }, acme, stream).body)
    const usage = { prompt: 9, completion: 4, input_cache_read: 3, input_cache_write: 2, internal_reasoning: 1 }
    t.match(events.slice(-3), [{ usage }, { tier: 'default' }, { reason: 'length' }])
  }
})

t.test('the simulated provider refuses what the real one refuses', async t => {
  const upstream = await startUpstream(t)
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
  const output = { type: 'function_call_output', call_id: 'c', output: 'a' }
  const thought = {
    type: 'reasoning',
    id: 'rs',
    summary: [{ type: 'summary_text', text: 'x' }],
    encrypted_content: encrypted('x'),
  }
  const spoken = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations: [] }] }
  const open = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }
  const strict = { ...open, strict: true }
  const loose = { ...open, strict: false }
  const said = (part: Json) => ({ input: [{ role: 'user', content: [part] }] })
  const accepted: Json[] = [
    { input: [hi, thought, call, output] },
    { input: [hi, { ...thought, id: 'r0' }, thought, spoken] },
    { model: 'gpt-5.4', reasoning: { effort: 'none' }, temperature: 1 },
    { text: { format: { type: 'json_object' } }, input: 'Give JSON' },
    { tools: [{ ...strict, parameters: { ...open.parameters, additionalProperties: false } }] },
    { tools: [open] },
  ]
  const refused: [Json, RegExp][] = [
    [{ messages: [] }, /Unknown parameter: 'messages'/],
    [{ max_tokens: 1 }, /Unknown parameter: 'max_tokens'/],
    [{ max_output_tokens: 15 }, /Expected a value >= 16, but got 15/],
    [{ stop: ['a'] }, /Unknown parameter: 'stop'/],
    [{ service_tier: 'fast' }, /Invalid value: 'fast'/],
    [{ include: ['everything'] }, /Invalid value: 'everything'/],
    [{ reasoning: { effort: 'most' } }, /Invalid value: 'most'/],
    [{ reasoning: { max_tokens: 1 } }, /Unknown parameter: 'reasoning.max_tokens'/],
    [{ model: 'gpt-4o', reasoning: { effort: 'low' } }, /'reasoning.effort' is not supported/],
    [{ model: 'gpt-4o', include: ['reasoning.encrypted_content'] }, /Encrypted content is not supported/],
    [{ model: 'gpt-5.4', temperature: 1 }, /'temperature' is not supported/],
    [{ text: { format: { type: 'json_schema', json_schema: {} } } }, /text.format.json_schema/],
    [{ text: { format: { type: 'json_object' } } }, /must contain the word 'json'/],
    [{ input: [] }, /Missing required parameter: 'input'/],
    [{ input: [{ ...hi, name: 'ann' }] }, /Unknown parameter: 'input\[0\].name'/],
    [said({ type: 'text', text: 'a' }), /Invalid value: 'text'. Supported values are: 'input_text'/],
    [said({ type: 'input_file', file_data: 'data:,a' }), /filename/],
    [said({ type: 'input_image', image_url: 'x' }), /Invalid image URL/],
    [said({ type: 'input_audio', input_audio: { data: '', format: 'flac' } }), /Invalid audio/],
    [
      { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'a' }] }] },
      /Supported values are: 'output_text'/,
    ],
    [{ input: [hi, call] }, /No tool output found for function call c/],
    [{ input: [hi, output] }, /No tool call found for function call output/],
    [{ input: [hi, call, output, output] }, /No tool call found/],
    [{ input: [hi, call, call, output] }, /Duplicate function call/],
    [{ input: [hi, { ...call, call_id: 'x'.repeat(65) }] }, /maximum length 64/],
    [{ input: [hi, { ...call, arguments: {} }] }, /expected a string/],
    [{ input: [hi, { ...thought, encrypted_content: 'forged' }, spoken] }, /could not be verified/],
    [{ input: [hi, { ...thought, encrypted_content: null }, spoken] }, /Items are not persisted/],
    [{ input: [hi, { ...thought, position: 0 }, spoken] }, /Unknown parameter: 'input\[1\].position'/],
    [{ input: [hi, thought] }, /without its required following item/],
    [{ input: [hi, thought, hi] }, /without its required following item/],
    [{ input: [hi, thought, spoken, thought, spoken] }, /Duplicate item/],
    [{ tools: [strict] }, /Invalid schema for function 'f'/],
    [{ tools: [{ type: 'function', function: { name: 'f' } }] }, /Unknown parameter: 'tools\[0\].function'/],
    [{ tools: [{ ...loose, defer_loading: true }] }, /needs a 'tool_search' tool/],
    [{ tools: [{ type: 'web_search', max_uses: 1 }] }, /Unknown parameter: 'tools\[0\].max_uses'/],
    [{ tools: [loose], tool_choice: { type: 'function', name: 'g' } }, /Tool choice 'g' not found/],
    [{ tools: [loose], tool_choice: { type: 'web_search' } }, /Tool choice 'web_search' not found/],
  ]
  const body = { model: 'm-1', store: false, input: [hi] }
  for (const change of accepted)
    t.equal((await ask(upstream.url(), { ...body, ...change })).status, 200, JSON.stringify(change))
  for (const [change, message] of refused) {
    const { status, text } = await ask(upstream.url(), { ...body, ...change })
    t.equal(status, 400, text)
    t.match(JSON.parse(text).error.message, message)
  }
})
