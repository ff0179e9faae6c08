/** Streams that fall silent, or break, behind the finish reason of their answer. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Event } from '../../src/core/event.ts'
import type { Translator } from '../../src/core/translator.ts'
import type { Json } from '../../src/json/json.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { dispatch } from '../../src/upstream/dispatch.ts'
import type { Transport } from '../../src/upstream/transport.ts'
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts'
import { exchange } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const { message }: { message(headers: Json, payload: unknown): Buffer } = await import(
  new URL('../helpers/upstream/event-stream.mjs', import.meta.url).href
)

interface Form {
  readonly wire: Translator
  readonly type?: string
  readonly text: readonly Buffer[]
  readonly finish: Buffer
}
const sse = (...events: Json[]) => Buffer.from(events.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''))
const chunk = (delta: Json, finish_reason: string | null = null, index = 0) =>
  sse({ id: 'x', choices: [{ index, delta, finish_reason }] })
const part = (text: string, finishReason?: string) =>
  sse({ candidates: [{ content: { parts: [{ text }] }, index: 0, ...(finishReason && { finishReason }) }] })
const converse = (name: string, payload: Json) =>
  message({ ':message-type': 'event', ':event-type': name, ':content-type': 'application/json' }, payload)
const wireOf = (plugin: { readonly wires: readonly unknown[] }, at = 0) => plugin.wires[at] as Translator

const forms: readonly Form[] = [
  { wire: wireOf(openai), text: [chunk({ content: 'Hi' })], finish: chunk({}, 'stop') },
  { wire: wireOf(mistral), text: [chunk({ content: 'Hi' })], finish: chunk({}, 'stop') },
  { wire: wireOf(gemini), text: [part('H')], finish: part('i', 'STOP') },
  { wire: wireOf(gemini, 1), text: [part('H')], finish: part('i', 'STOP') },
  {
    wire: wireOf(anthropic),
    text: [
      sse({ type: 'message_start', message: { id: 'm', usage: { input_tokens: 3 } } }),
      sse({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    ],
    finish: sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }),
  },
  {
    wire: wireOf(bedrock),
    type: 'application/vnd.amazon.eventstream',
    text: [converse('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } })],
    finish: converse('messageStop', { stopReason: 'end_turn' }),
  },
]

/** A provider that sends `chunks`, after which its answer breaks with `error`; `ends` counts what is expected to end. */
function breaking(type: string, chunks: readonly Buffer[], error: GatewayError, ends: { count: number }): Transport {
  const left = [...chunks]
  const incoming = {
    status: 200,
    header: name => (name === 'content-type' ? type : undefined),
    async take() {
      const next = left.shift()
      if (!next) throw error
      return [next]
    },
    committed() {},
    expectEnd() {
      ends.count++
    },
    destroy() {},
    release() {},
  } satisfies Partial<UpstreamResponse> as Partial<UpstreamResponse> as UpstreamResponse
  return { send: async () => incoming } satisfies Pick<Transport, 'send'> as Pick<Transport, 'send'> as Transport
}

/** The text, why it ended, and the error of an answer; `stream` is how its client gets it. */
async function outcome(form: Form, chunks: readonly Buffer[], error: GatewayError, stream = true, n = 1) {
  const ends = { count: 0 }
  const request = { model: 'm', messages: [], stream, n }
  const ex = exchange({ request, target: target({ translator: form.wire }) })
  ex.outbound.request = { path: '/', body: {} }
  const transport = breaking(form.type ?? 'text/event-stream', chunks, error, ends)
  const events: Event[] = []
  try {
    const reply = await dispatch(transport, new MemoryBudget(2 ** 30, { memory: () => 0 }))(ex)
    for await (const batch of reply.events) for (const event of batch) events.push(event)
  } catch (thrown) {
    events.push({ type: 'error', error: thrown as GatewayError })
  }
  const text = events.map(event => (event.type === 'text' ? event.text : '')).join('')
  const finishes = events.flatMap(event => (event.type === 'finish' ? event.reason : []))
  return [text, finishes, events.flatMap(event => (event.type === 'error' ? event.error.code : [])), ends.count > 0]
}

const silence = errors.upstreamTimeout('idle')
const reset = errors.unreachable('ECONNRESET')

t.test('an answer that is silent or reset behind its finish reason ends in order, on every wire', async t => {
  for (const form of forms) {
    for (const stream of [true, false]) {
      for (const error of [silence, reset]) {
        const says = `${form.wire.wire}, ${stream ? 'streamed' : 'whole'}: ${error.code}`
        t.strictSame(await outcome(form, [...form.text, form.finish], error, stream), ['Hi', ['stop'], [], true], says)
        // A report of which half has come is no part of the answer.
        const half = Buffer.concat([form.finish, form.finish.subarray(0, 20)])
        t.strictSame(await outcome(form, [...form.text, half], error, stream), ['Hi', ['stop'], [], true], says)
      }
    }
  }
})

t.test('an answer that breaks before its finish reason has failed', async t => {
  for (const form of forms) {
    const [, finishes, failures, isComplete] = await outcome(form, form.text, silence)
    t.strictSame([finishes, failures, isComplete], [[], ['timeout'], false], form.wire.wire)
  }
})

t.test('a client that leaves behind the finish reason has left', async t => {
  for (const form of forms) {
    const [, , failures] = await outcome(form, [...form.text, form.finish], errors.aborted())
    t.strictSame(failures, ['request_cancelled'], form.wire.wire)
  }
})

t.test('an answer of several choices is complete when each has its finish reason', async t => {
  const [form] = forms
  const first = [chunk({ content: 'a' }, 'stop')]
  t.strictSame(await outcome(form!, first, silence, true, 2), ['a', [], ['timeout'], false])
  const both = [...first, chunk({ content: 'b' }, 'stop', 1)]
  t.strictSame(await outcome(form!, both, silence, true, 2), ['ab', ['stop', 'stop'], [], true])
})
