/** Ids and names that are long and differ at their end: each costs as much as its length, and no more for the others. */
import t from 'tap'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import type { Codec } from '../../src/core/codec.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { exchange } from '../core/kit.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
const START = 'a'.repeat(16_400)
const long = (at: number) => START + String(at).padStart(6, '0')
const asked = { role: 'user', content: 'hi' }
const signed = (at: number) => ({ type: 'reasoning.text', signature: `mgs1.12345678.${'A'.repeat(22)}.${long(at)}` })

const rows: [says: string, codec: Codec<'chat'>, body: (count: number) => object][] = [
  [
    'reasoning details of chat',
    openAiChat,
    count => ({
      model: 'm',
      messages: [asked, { role: 'assistant', content: 'a', reasoning_details: many(count, signed) }],
    }),
  ],
  [
    'allowed tools of chat',
    openAiChat,
    count => {
      const tools = many(count / 2, at => ({ type: 'function', function: { name: long(at) } }))
      return {
        model: 'm',
        messages: [asked],
        tools,
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } },
      }
    },
  ],
  [
    'calls and results of Messages',
    anthropicMessages,
    count => ({
      model: 'm',
      max_tokens: 1,
      messages: [
        asked,
        {
          role: 'assistant',
          content: many(count / 2, at => ({ type: 'tool_use', id: long(at), name: 'f', input: {} })),
        },
        {
          role: 'user',
          content: many(count / 2, at => ({ type: 'tool_result', tool_use_id: long(at), content: 'a' })),
        },
      ],
    }),
  ],
  [
    'calls and results of Responses',
    openAiResponses,
    count => ({
      model: 'm',
      input: [
        asked,
        ...many(count / 2, at => ({ type: 'function_call', call_id: long(at), name: 'f', arguments: '{}' })),
        ...many(count / 2, at => ({ type: 'function_call_output', call_id: long(at), output: 'a' })),
      ],
    }),
  ],
  [
    'tools of Responses',
    openAiResponses,
    count => ({ model: 'm', input: 'hi', tools: many(count, at => ({ type: 'function', name: long(at) })) }),
  ],
  [
    'calls and results of Gemini, by id',
    generateContent,
    count => ({
      contents: [
        { parts: [{ text: 'hi' }] },
        { role: 'model', parts: many(count / 2, at => ({ functionCall: { id: long(at), name: 'f', args: {} } })) },
        { parts: many(count / 2, at => ({ functionResponse: { id: long(at), name: 'f', response: {} } })) },
      ],
    }),
  ],
  [
    'calls and results of Gemini, by name',
    generateContent,
    count => ({
      contents: [
        { parts: [{ text: 'hi' }] },
        { role: 'model', parts: many(count / 2, at => ({ functionCall: { name: long(at), args: {} } })) },
        { parts: many(count / 2, at => ({ functionResponse: { name: long(at), response: {} } })) },
      ],
    }),
  ],
  [
    'the order of properties of Gemini',
    generateContent,
    count => ({
      contents: [{ parts: [{ text: 'hi' }] }],
      tools: [
        {
          functionDeclarations: [
            { name: 'f', parameters: { type: 'OBJECT', properties: { a: {} }, propertyOrdering: many(count, long) } },
          ],
        },
      ],
    }),
  ],
]

for (const [says, codec, body] of rows) {
  t.test(says, t => {
    const timed = (count: number) => () => {
      // Flat texts, as a body has them.
      const parsed: unknown = JSON.parse(JSON.stringify(body(count)))
      return cpuMs(() => {
        try {
          codec.decode(parsed, exchange())
        } catch (thrown) {
          if (!(thrown instanceof GatewayError)) throw thrown
          // Refused when all of them have been read.
          t.match(thrown.message, /^The names and ids of tool calls/)
        }
      })
    }
    timed(20)()
    const fine = (one: number, four: number) => inProportion(one, four - 10)
    const [one = 0, four = 0] = leastOf([timed(300), timed(1200)], fine)
    t.ok(fine(one, four), `${one} ms, and ${four} ms for four times as many`)
    t.end()
  })
}

t.test('long texts in reasoning details are compared, and not written again', t => {
  const half = '\ud800'.repeat(2_000_000)
  const details = [`${half}a`, `${half}b`, `${half}a`].map(text => ({ type: 'reasoning.text', text }))
  const request = { model: 'm', messages: [asked, { role: 'assistant', content: 'a', reasoning_details: details }] }
  const kept: number[] = []
  const timed = () =>
    cpuMs(() => {
      const { messages } = openAiChat.decode(request, exchange())
      kept.push(messages[1]!.reasoning_details!.length)
    })
  const [took = 0] = leastOf([timed], ms => ms < 100)
  t.strictSame([...new Set(kept)], [2])
  t.ok(took < 100, `${took} ms of CPU`)
  t.end()
})
