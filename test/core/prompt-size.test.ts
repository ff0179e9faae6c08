/** The prompt of a chat request is estimated from every text that a wire may send. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Provider, Translator } from '../../src/core/translator.ts'
import { chat as chatEndpoint, images, moderations } from '../../src/endpoints/inference.ts'
import { chat, promptFanOut } from '../../src/operations/chat/index.ts'
import { imageFanOut } from '../../src/operations/images/decoder.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange, text } from './kit.ts'

const LONG = 'x'.repeat(40_000)
const message = (fields: object, role = 'assistant') => ({ messages: [{ role, ...fields }] })
const call = (of: object) => message({ tool_calls: [{ id: 'c', ...of }] })
const json_schema = { name: 'n', schema: { type: 'object', description: LONG } }

const rows: readonly (readonly [says: string, request: object])[] = [
  ['content', message({ content: LONG }, 'user')],
  ['a text part', message({ content: [{ type: 'text', text: LONG }] }, 'user')],
  ['a part that refuses', message({ content: [{ type: 'refusal', refusal: LONG }] })],
  ['a refusal', message({ content: null, refusal: LONG })],
  ['items of an answer', message({ content: '', message_items: [{ text: LONG }] })],
  ['the name of a participant', message({ content: '', name: LONG }, 'user')],
  ['the arguments of a call', call({ type: 'function', function: { name: 'f', arguments: LONG } })],
  ['the input of a custom call', call({ type: 'custom', custom: { name: 'f', input: LONG } })],
  ['a tool', { ...message({}), tools: [{ type: 'function', function: { name: 'f', description: LONG } }] }],
  ['the name of a file', message({ content: [{ type: 'file', file: { filename: LONG, file_id: 'f' } }] }, 'user')],
  ['the schema of the answer', { ...message({}), response_format: { type: 'json_schema', json_schema } }],
]

for (const [says, fields] of rows) {
  t.test(`${says} counts, and a stream that is cut before its usage is charged for it`, async t => {
    const request = { model: 'm', stream: true, ...fields }
    const counted = chat.promptSize(request as ChatRequest)
    t.ok(counted >= LONG.length && counted < LONG.length + 200, String(counted))
    const ex = exchange({ request, target: target() })
    ex.observe([text('a')])
    ex.meter.complete(true)
    t.ok(ex.usage.prompt! >= LONG.length / 4)
    t.equal(ex.estimated, true)
  })
}

const each = <T>(count: number, of: (at: number) => T) => Array.from({ length: count }, (_, at) => of(at))
const calls = (count: number, id: string) =>
  each(count, () => ({ id, type: 'function', function: { name: '', arguments: '' } }))
const envelopes: readonly (readonly [says: string, messages: object[], tokens: number])[] = [
  ['a few messages', each(64, () => ({ role: 'user', content: '' })), 0],
  ['many messages that say nothing', each(60_000, () => ({ role: 'user', content: '' })), 239_744],
  ['many calls of one message', [{ role: 'assistant', content: null, tool_calls: calls(10_000, '') }], 39_748],
  ['ids of calls', [{ role: 'assistant', content: null, tool_calls: calls(1, LONG) }], 9752],
  ['ids of results', [{ role: 'tool', content: '', tool_call_id: LONG }], 9748],
  ['ids of Chinese', [{ role: 'tool', content: '', tool_call_id: '漢'.repeat(13_333) }], 9748],
]
for (const [says, messages, tokens] of envelopes) {
  t.test(`${says}: what stands around texts counts where it is much`, async t => {
    t.equal(exchange({ request: { model: 'm', messages }, target: target() }).prompt.tokens, tokens)
  })
}

t.test('a message whose items repeat its content counts once', async t => {
  const request = message({ content: LONG, message_items: [{ text: LONG }] })
  t.equal(chat.promptSize(request as ChatRequest), LONG.length)
})

const details = [{ text: LONG.slice(1) }, { text: 'x', signature: 's' }]
const replays: readonly (readonly [says: string, fields: object, role: string, tokens: number])[] = [
  ['reasoning', { reasoning: LONG }, 'assistant', 10_000],
  ['reasoning of the other name', { reasoning_content: LONG }, 'assistant', 10_000],
  ['details', { reasoning_details: details }, 'assistant', 10_000],
  [
    'the same under all names',
    { reasoning: LONG, reasoning_content: LONG, reasoning_details: details },
    'assistant',
    10_000,
  ],
  ['reasoning of a user', { reasoning: LONG }, 'user', 0],
]
for (const [says, fields, role, tokens] of replays) {
  t.test(`${says}: counts where the provider gets it back`, async t => {
    const request = { model: 'm', ...message({ content: '', ...fields }, role) }
    const replayed = (reasoningReplay: Provider['reasoningReplay']) =>
      exchange({ request, target: target({ provider: { reasoningReplay } }) }).prompt.tokens
    t.equal(replayed('reasoning_details'), tokens)
    t.equal(replayed(undefined), 0)
  })
}

const HAN = '漢'.repeat(13_333)
const sealedFor = (provider: string) => `${provider}:${LONG}`
const block = { type: 'web_search_tool_result', provider: 'acme', content: HAN }
const own: readonly (readonly [says: string, fields: object, tokens: number])[] = [
  ['the signature of a thought', { reasoning_details: [{ text: 'x', signature: sealedFor('acme') }] }, 10_000],
  ['a thought with its signature', { reasoning_details: [{ text: LONG, signature: sealedFor('acme') }] }, 10_000],
  ['a thought that is hidden', { reasoning_details: [{ data: sealedFor('acme') }] }, 10_000],
  ["another provider's", { reasoning_details: [{ text: LONG, signature: sealedFor('other') }] }, 0],
  ['a block of its own tool', { provider_native_blocks: [block, { ...block, provider: 'other' }] }, 10_000],
  [
    'the signature of a call',
    {
      tool_calls: [
        {
          ...{ id: 'c', type: 'function', function: { name: 'f', arguments: '' } },
          extra_content: { vendor: { thought_signature: sealedFor('acme') } },
        },
      ],
    },
    10_000,
  ],
]
for (const [says, fields, tokens] of own) {
  t.test(`${says}: counts as prompt of its provider, and makes no request too long`, async t => {
    const request = { model: 'm', ...message({ content: '', ...fields }) }
    const ex = (contextLength?: number) =>
      exchange({ request, target: target({ provider: { id: 'acme' }, mapping: { contextLength } }) })
    const { prompt = 0 } = ex().prompt.usage
    t.ok(prompt >= tokens && prompt < tokens + 50, `${prompt} tokens`)
    t.ok(ex().prompt.tokens < 50)
    t.equal(ex(5000).prompt.usage.prompt, Math.min(prompt, 5000), 'within its context')
  })
}

t.test('a prompt that several requests repeat counts as often', async t => {
  const plain = target().translator
  const pictures = { ...plain, fanOut: imageFanOut(() => 4) } as Translator
  const one = { ...plain, fanOut: promptFanOut } as Translator
  const messages = ['a', 'b'].map(content => ({ role: 'user', content: content.repeat(4000) }))
  const rows: [says: string, request: object, translator: Translator, tokens: number][] = [
    ['pictures of which four come at once', { n: 10, prompt: LONG }, pictures, 30_000],
    ['a single one', { n: 1, prompt: LONG }, pictures, 10_000],
    ['a wire that makes all at once', { n: 10, prompt: LONG }, plain, 10_000],
    ['prompts that are answered one by one', { messages, prompts: true }, one, 2000],
  ]
  for (const [says, request, translator, tokens] of rows) {
    const facts = { request: { model: 'm', ...request }, target: target({ translator }) }
    const ex = exchange('prompt' in request ? { ...facts, endpoint: images[0]! } : facts)
    t.equal(ex.prompt.usage.prompt, tokens, says)
  }
})

t.test('prompts that are read apart each have the context of the model', async t => {
  const image = { type: 'image_url', image_url: { url: 'https://a.example/a.png' } }
  const texts = each(20, () => LONG)
  const messages = (content: unknown[]) => content.map(content => ({ role: 'user', content }))
  const rows: [says: string, endpoint: Endpoint, request: object, tokens: number][] = [
    ['one prompt', chatEndpoint, { messages: messages(texts) }, 15_000],
    ['twenty prompts', chatEndpoint, { messages: messages(texts), prompts: true }, 200_000],
    ['twenty texts to judge', moderations, { input: texts }, 200_000],
    ['parts to judge together', moderations, { input: [{ type: 'text', text: LONG.repeat(2) }, image] }, 15_000],
  ]
  for (const [says, endpoint, request, tokens] of rows) {
    const to = target({ mapping: { contextLength: 15_000 } })
    t.equal(exchange({ endpoint, request: { model: 'm', ...request }, target: to }).prompt.usage.prompt, tokens, says)
  }
})

t.test('tools count as many bytes as their JSON, and texts of any kind take no longer to be counted', t => {
  const tool = (description: string) => ({ type: 'function', function: { name: 'f', description, parameters: shape } })
  const shape = {
    type: 'object',
    properties: { a: { enum: [1, -2.5, null, true, 'é\n"'] }, b: {}, c: undefined },
    required: [],
  }
  const counted = (tools: object[]) => chat.promptSize({ model: 'm', messages: [], tools } as unknown as ChatRequest)
  const short = [tool('a "quoted"\tline'), tool('')]
  t.equal(counted(short), Buffer.byteLength(JSON.stringify(short)))
  const long = [tool('x'.repeat(300_000)), ...short]
  t.equal(counted(long), Buffer.byteLength(JSON.stringify(long)))
  const halves = [tool('\ud800'.repeat(4_000_000)), ...Array.from({ length: 1000 }, () => tool('\udc00'.repeat(1000)))]
  const [took = 0] = leastOf([() => cpuMs(() => void counted(halves))], ms => ms < 200)
  t.ok(took < 200, `${took} ms of CPU for five million halves of characters`)
  t.end()
})

t.test('a prompt costs by the bytes of its texts, in whatever script they are', t => {
  const rows: [says: string, text: string, size: number][] = [
    ['Latin', 'abcd', 4],
    ['with accents', 'é', 2],
    ['Chinese', '中文', 6],
    ['an emoji', '👋', 4],
  ]
  for (const [says, text, size] of rows) {
    const messages = [{ role: 'user', content: text }]
    t.equal(chat.promptSize({ model: 'm', messages } as ChatRequest), size, says)
  }
  t.end()
})
