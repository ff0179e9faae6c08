/** What every attempt of a chat request writes anew: on every client wire as much as is bounded, and no more. */
import t from 'tap'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import type { Codec } from '../../src/core/codec.ts'
import { exchange } from '../core/kit.ts'

const asked = { role: 'user', content: 'hi' }
const ids = (count: number, length: number) =>
  Array.from({ length: count }, (_, at) => String(at).padStart(length, 'c'))
type Body = (ids: readonly string[]) => object

const rows: [says: string, codec: Codec<'chat'>, body: Body][] = [
  [
    'chat',
    openAiChat,
    ids => {
      const tool_calls = ids.map(id => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } }))
      return { model: 'm', messages: [asked, { role: 'assistant', tool_calls }] }
    },
  ],
  [
    'Responses',
    openAiResponses,
    ids => ({
      model: 'm',
      input: ids.map(call_id => ({ type: 'function_call', call_id, name: 'f', arguments: '{}' })),
    }),
  ],
  [
    'Messages',
    anthropicMessages,
    ids => {
      const content = ids.map(id => ({ type: 'tool_use', id, name: 'f', input: {} }))
      return { model: 'm', max_tokens: 1, messages: [asked, { role: 'assistant', content }] }
    },
  ],
  [
    'Google’s wire',
    generateContent,
    ids => {
      const parts = ids.map(id => ({ functionCall: { id, name: 'f', args: {} } }))
      return {
        contents: [
          { role: 'user', parts: [{ text: 'hi' }] },
          { role: 'model', parts },
        ],
      }
    },
  ],
]

const many = 'too_many_elements'

t.test('a history may have 5,000 calls, whose names and ids have 2 Mi characters', t => {
  for (const [says, codec, body] of rows) {
    const decode = (count: number, length: number) => () => codec.decode(body(ids(count, length)), exchange())
    t.doesNotThrow(decode(5000, 410), says)
    t.throws(decode(5001, 5), { status: 400, code: many, message: /more than 5000 tool calls/ }, says)
    t.throws(decode(5000, 420), { status: 400, message: /ids of tool calls .* 2097152 characters/ }, says)
  }
  t.end()
})

t.test('a request may have 16,384 names in strict schemas', t => {
  const decode = (body: object) => () => {
    const ex = exchange()
    ex.input.values = 20_000
    return openAiChat.decode({ model: 'm', messages: [asked], ...body }, ex)
  }
  const schema = (names: number) => ({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: names - 2 }, (_, at) => [`p${at}`, {}])),
  })
  const tool = (names: number, strict: boolean) => ({
    tools: [{ type: 'function', function: { name: 'f', strict, parameters: schema(names) } }],
  })
  const answer = (names: number) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: schema(names) } },
  })
  const refused = {
    status: 400,
    code: many,
    message: /more than 16384 names in the schemas of strict tools and of the answer/,
  }
  for (const body of [tool(16_384, true), answer(16_384), tool(16_385, false)]) t.doesNotThrow(decode(body))
  for (const body of [tool(16_385, true), answer(16_385), { ...tool(9000, true), ...answer(9000) }]) {
    t.throws(decode(body), refused)
  }
  t.end()
})
