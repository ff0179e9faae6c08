/** What a body holds for providers of its own wire alone is held for as what every wire carries. */
import t from 'tap'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange } from './kit.ts'

/** Of 40,000 bytes. */
const LONG = `${'漢'.repeat(13_333)}x`
const schema = { type: 'object' }
const user = (...content: object[]) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, ...content] }],
})
const messages = (fields: object) => ({ model: 'm', max_tokens: 1, ...user(), ...fields })
const pdf = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }
const gemini = (fields: object) => ({ contents: [{ parts: [{ text: 'Hi' }] }], ...fields })
const said = { type: 'message', role: 'user', content: 'Hi' }
const responses = (fields: object) => ({ model: 'm', input: [said], ...fields })
const described = (name: string) => ({ name, description: LONG })
const found = { type: 'tool_search_output', execution: 'client', call_id: 'c' }
const search = { type: 'tool_search_call', execution: 'client', call_id: 'c', arguments: {} }

type Row = readonly [says: string, codec: Codec<'chat'>, body: object]
const rows: readonly Row[] = [
  [
    'examples of a tool',
    anthropicMessages,
    messages({ tools: [{ name: 'f', input_schema: schema, input_examples: [{ a: LONG }] }] }),
  ],
  [
    "a provider's tool",
    anthropicMessages,
    messages({ tools: [{ type: 'web_search_20250305', name: 'web_search', allowed_domains: [], a: LONG }] }),
  ],
  [
    'a tool that is added later',
    anthropicMessages,
    messages(user({ type: 'tool_addition', tool: { name: 'f', description: LONG } })),
  ],
  [
    'tools of a summary',
    anthropicMessages,
    messages(
      user({
        type: 'compaction',
        content: 'a',
        tool_changes: [{ type: 'tool_addition', tool: { name: 'f', description: LONG } }],
      }),
    ),
  ],
  ['what a PDF is about', anthropicMessages, messages(user({ type: 'document', source: pdf, context: LONG }))],
  [
    'instructions of a summary',
    anthropicMessages,
    messages({ context_management: { edits: [{ type: 'compact', instructions: LONG }] } }),
  ],
  [
    'a result with a block of an own kind',
    anthropicMessages,
    messages(user({ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'new', a: LONG }] })),
  ],
  ['system with a block of an own kind', anthropicMessages, messages({ system: [{ type: 'new', a: LONG }] })],
  [
    'a function that is not allowed',
    generateContent,
    gemini({
      tools: [{ functionDeclarations: [{ name: 'a' }, described('b')] }],
      toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['a'] } },
    }),
  ],
  [
    'the response of a function',
    generateContent,
    gemini({ tools: [{ functionDeclarations: [{ name: 'a', response: { type: 'STRING', description: LONG } }] }] }),
  ],
  [
    'media of the system instruction',
    generateContent,
    gemini({ systemInstruction: { parts: [{ inlineData: { mimeType: 'image/png', data: LONG } }] } }),
  ],
  [
    'code in a turn of the user',
    generateContent,
    gemini({ contents: [{ parts: [{ text: 'Hi' }, { executableCode: { code: LONG } }] }] }),
  ],
  [
    'a schema beside plain text',
    generateContent,
    gemini({ generationConfig: { responseMimeType: 'text/plain', responseJsonSchema: { description: LONG } } }),
  ],
  [
    'a tool that is not allowed',
    openAiResponses,
    responses({
      tools: [
        { type: 'function', name: 'a' },
        { type: 'function', ...described('b') },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'a' }] },
    }),
  ],
  [
    'the description of a namespace',
    openAiResponses,
    responses({ tools: [{ type: 'namespace', ...described('n'), tools: [{ type: 'function', name: 'a' }] }] }),
  ],
  [
    'the text of reasoning',
    openAiResponses,
    responses({
      input: [said, { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: LONG }] }],
    }),
  ],
  [
    'a tool that is found again',
    openAiResponses,
    responses({
      tools: [
        { type: 'tool_search', execution: 'client' },
        { type: 'function', name: 'a' },
      ],
      input: [said, search, { ...found, tools: [{ type: 'function', ...described('a') }] }],
    }),
  ],
]

function decoded(codec: Codec<'chat'>, body: object): Exchange {
  const ex = exchange()
  Object.assign(ex.http, { params: { model: 'm' } })
  ex.request = codec.decode(body, ex) as ChatRequest
  return ex
}

for (const [says, codec, body] of rows) {
  t.test(`${says}: counts as prompt of providers of its wire, and makes no request too long`, async t => {
    const ex = decoded(codec, body)
    const { wire } = ex.input.native!
    const to = (native: object, contextLength?: number) => {
      const made = target({ mapping: { contextLength } })
      ex.target = {
        ...made,
        translator: {
          ...made.translator,
          native: { wire, withMedia: body => body, encode: () => ({ path: '', body: {} }) },
          ...native,
        },
      }
      return ex.prompt.usage.prompt!
    }
    const tokens = to({})
    t.ok(tokens >= 10_000 && tokens < 10_200, `${tokens} tokens`)
    t.ok(ex.prompt.tokens < 200)
    t.equal(to({}, 5000), 5000, 'within its context')
    t.ok(to({ native: undefined }) < 200, 'no other provider gets it')
  })
}

const plain: readonly Row[] = [
  [
    'messages',
    anthropicMessages,
    messages({
      system: 'Be brief.',
      tools: [{ name: 'f', description: LONG, input_schema: schema }],
      output_config: { format: { type: 'json_schema', schema } },
    }),
  ],
  [
    'results',
    anthropicMessages,
    messages(
      user(
        { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: LONG }] },
        { type: 'document', title: LONG, source: { type: 'text', data: LONG }, context: LONG },
      ),
    ),
  ],
  [
    'contents',
    generateContent,
    gemini({
      systemInstruction: { parts: [{ text: LONG }] },
      tools: [{ functionDeclarations: [described('a')] }],
      generationConfig: { responseMimeType: 'application/json', responseJsonSchema: { description: LONG } },
    }),
  ],
  [
    'items',
    openAiResponses,
    responses({
      instructions: LONG,
      tools: [{ type: 'function', parameters: schema, ...described('a') }],
      text: { format: { type: 'json_schema', name: 'n', schema: { description: LONG } } },
    }),
  ],
]

for (const [says, codec, body] of plain) {
  t.test(`${says} that every wire carries count once`, async t => {
    const { size = 0 } = decoded(codec, body).input.native!
    t.ok(size < 20, `${size} bytes`)
  })
}
