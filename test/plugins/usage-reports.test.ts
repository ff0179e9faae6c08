/** Usage reports of every chat wire: which of several counts, and cache counts that overlap. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { realtime } from '../../plugins/openai/realtime.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import type { Translator } from '../../src/core/translator.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { Frame } from '../../src/core/wire.ts'
import { decodeWith, type Json, usageOf } from './golden-kit.ts'
import { target } from './wire-kit.ts'

const plugins = [anthropic, bedrock, gemini, mistral, openai, responses]
const wires = new Map(plugins.flatMap(({ wires }) => wires.map(wire => [wire.wire, wire] as const)))

/** A stream on each wire with these reports, in their order. */
const streams: Readonly<Record<string, (reports: readonly Json[]) => (Json | Frame)[]>> = {
  messages: ([first, ...more]) => [
    { type: 'message_start', message: { id: 'm', usage: first } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
    ...more.map(usage => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })),
    { type: 'message_stop' },
  ],
  chat: reports => [
    { id: 'c', choices: [{ index: 0, delta: { content: 'Hi' } }] },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    ...reports.map(usage => ({ id: 'c', choices: [], usage })),
  ],
  gemini: reports =>
    reports.map((usageMetadata, at) => ({
      candidates: [
        { content: { parts: [{ text: 'Hi' }] }, ...(at === reports.length - 1 && { finishReason: 'STOP' }) },
      ],
      usageMetadata,
    })),
  bedrock: reports => [
    { name: 'contentBlockDelta', data: JSON.stringify({ contentBlockIndex: 0, delta: { text: 'Hi' } }) },
    ...reports.map(usage => ({ name: 'metadata', data: JSON.stringify({ usage }) })),
    { name: 'messageStop', data: JSON.stringify({ stopReason: 'end_turn' }) },
  ],
  responses: reports =>
    reports.map((usage, at) => ({
      type: at < reports.length - 1 ? 'response.in_progress' : 'response.completed',
      response: { id: 'r', status: 'completed', output: [], usage },
    })),
}

function counted(name: string, stream: string, reports: readonly Json[]): Usage {
  const wire = wires.get(name) as Translator<'chat'>
  const payloads = streams[stream]!(reports)
  const decoder = wire.decoder('stream', target({ translator: wire as Translator }))
  if (stream !== 'bedrock') return usageOf(decodeWith(decoder, payloads))
  return usageOf([...(payloads as Frame[]).flatMap(frame => decoder.frame(frame)), ...decoder.end()])
}

const split = { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 }
const ofMessages: readonly [says: string, reports: Json[], usage: Usage][] = [
  [
    'the end corrects the input downwards',
    [
      { input_tokens: 34_824, output_tokens: 1 },
      { input_tokens: 3883, cache_read_input_tokens: 30_464, output_tokens: 20 },
    ],
    { prompt: 34_347, input_cache_read: 30_464, completion: 20 },
  ],
  [
    'an absent or null count keeps its value',
    [
      { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 1 },
      { input_tokens: null, cache_read_input_tokens: null, output_tokens: 7 },
      { output_tokens: 6 },
    ],
    { prompt: 15, input_cache_read: 5, completion: 6 },
  ],
  [
    'a total replaces an older one with its split',
    [
      { input_tokens: 10, cache_creation_input_tokens: 100, cache_creation: split },
      { cache_creation_input_tokens: 30, output_tokens: 2 },
    ],
    { prompt: 40, input_cache_write: 0, input_cache_write_1h: 30, completion: 2 },
  ],
  [
    'zeros at the end count no prompt',
    [
      { input_tokens: 10, output_tokens: 1 },
      { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 3 },
    ],
    { prompt: 10, completion: 3 },
  ],
  [
    'zeros at the end withdraw no cached or written tokens',
    [
      { input_tokens: 10, cache_read_input_tokens: 1000, cache_creation_input_tokens: 50, output_tokens: 1 },
      { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 3 },
    ],
    { prompt: 1060, input_cache_read: 1000, input_cache_write: 50, completion: 3 },
  ],
]

t.test('C3 the last report of a stream counts, member by member', async t => {
  for (const [says, reports, usage] of ofMessages) {
    for (const wire of ['anthropic.messages', 'anthropic.vertex']) {
      t.same(counted(wire, 'messages', reports), usage, `${wire}: ${says}`)
    }
  }
  const ofChat = [
    { prompt_tokens: 100, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 80 } },
    { prompt_tokens: 90, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 0 } },
    { prompt_tokens: null, completion_tokens: 7, prompt_tokens_details: null },
  ]
  for (const wire of ['openai.chat', 'mistral.chat']) {
    t.same(counted(wire, 'chat', ofChat), { prompt: 90, input_cache_read: 0, completion: 7 }, wire)
  }
  const ofGemini = [
    { promptTokenCount: 50, candidatesTokenCount: 3, thoughtsTokenCount: 20 },
    { promptTokenCount: 40, candidatesTokenCount: 5 },
  ]
  t.same(counted('gemini.generate', 'gemini', ofGemini), { prompt: 40, completion: 25, internal_reasoning: 20 })
  const ofBedrock = [
    { inputTokens: 34_824, outputTokens: 1 },
    { inputTokens: 3883, cacheReadInputTokens: 30_464, outputTokens: null },
  ]
  t.same(counted('bedrock.converse', 'bedrock', ofBedrock), {
    ...{ prompt: 34_347, input_cache_read: 30_464, completion: 1 },
  })
  const ofResponses = [
    { input_tokens: 50, output_tokens: 9 },
    { input_tokens: 40, output_tokens: 5 },
  ]
  t.same(counted('openai.responses', 'responses', ofResponses), { prompt: 40, completion: 5 })
})

t.test('C37 a chat report may name cached tokens as the Messages wire does', async t => {
  const report = {
    prompt_tokens: 100,
    completion_tokens: 3,
    cache_read_input_tokens: 60,
    cache_creation_input_tokens: 30,
  }
  const usage = { prompt: 100, input_cache_read: 60, input_cache_write: 30, completion: 3 }
  for (const wire of ['openai.chat', 'mistral.chat']) t.same(counted(wire, 'chat', [report]), usage, wire)
})

const overlaps: readonly [prompt: number, read: number, written: number, usage: readonly [number, number, number]][] = [
  [2168, 2161, 2161, [2168, 2161, 7]],
  [2168, 2000, 100, [2168, 2000, 100]],
  [100, 100, 100, [100, 100, 0]],
  [100, 0, 100, [100, 0, 100]],
  [100, 101, 0, [201, 101, 0]],
  [100, 50, 120, [270, 50, 120]],
]

t.test('C37 cached and written tokens are parts of the prompt while neither exceeds it', async t => {
  for (const [prompt, cached_tokens, cache_write_tokens, [whole, input_cache_read, input_cache_write]] of overlaps) {
    const expected = {
      ...{ prompt: whole, completion: 3 },
      ...(input_cache_read > 0 && { input_cache_read }),
      ...(input_cache_write > 0 && { input_cache_write }),
    }
    const says = `${cached_tokens} read and ${cache_write_tokens} written of ${prompt}`
    const details = { cached_tokens, cache_write_tokens }
    const chat = [{ prompt_tokens: prompt, completion_tokens: 3, prompt_tokens_details: details }]
    t.same(counted('openai.chat', 'chat', chat), expected, `openai.chat: ${says}`)
    t.same(counted('mistral.chat', 'chat', chat), expected, `mistral.chat: ${says}`)
    const response = [{ input_tokens: prompt, output_tokens: 3, input_tokens_details: details }]
    t.same(counted('openai.responses', 'responses', response), expected, `openai.responses: ${says}`)
    // No part of a session's prompt is more than its total.
    if (Math.max(cached_tokens, cache_write_tokens) > prompt) continue
    const session = { input_tokens: prompt, output_tokens: 3, input_token_details: details }
    t.same(realtime.realtime!.usage({ usage: session }), expected, `openai.realtime: ${says}`)
  }
})
