/** Marks for the caches of providers that the gateway places itself: where, and where not. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { costDetails } from '../../src/codecs/accounting.ts'
import type { ChatRequest, Message } from '../../src/core/chat-request.ts'
import type { Translator } from '../../src/core/translator.ts'
import { chat } from '../../src/operations/chat/index.ts'
import { exchange } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { deepFreeze, target } from './wire-kit.ts'

const messagesWire = anthropic.wires[0] as Translator<'chat'>
const converse = bedrock.wires[0] as Translator<'chat'>
const price = flat({ prompt: '3', completion: '15', input_cache_read: '0.3', input_cache_write: '3.75' })
const at = (translator: Translator<'chat'>, mapping = {}) =>
  target({
    translator,
    mapping: { wires: new Map([['chat', translator]]), supports: new Set(['prompt_cache']), price, ...mapping },
  })

const long = 'word '.repeat(1000)
const system: Message = { role: 'system', content: long }
const user = (content: Message['content']): Message => ({ role: 'user', content })
const tools: ChatRequest['tools'] = ['a', 'b'].map(name => ({
  type: 'function',
  function: { name, description: long },
}))
const call: Message = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } }],
}
const result: Message = { role: 'tool', tool_call_id: 'c', content: 'cold' }
const loop: ChatRequest = { model: 'm', messages: [system, user('Hi'), call, result], tools }

/** Where a request's marks stand: of its tools, and of its messages. */
function marks(request: ChatRequest, on = at(messagesWire)) {
  const { tools = [], messages } = chat.adapted!(deepFreeze(request), on, true)
  const isMarked = (value: unknown) => JSON.stringify(value).includes('"ephemeral"')
  const places = (list: readonly unknown[]) => list.flatMap((one, place) => (isMarked(one) ? [place] : []))
  return { tools: places(tools ?? []), messages: places(messages) }
}

t.test('tools, system, the turn before the last answer and the last one are marked', async t => {
  t.strictSame(marks(loop), { tools: [1], messages: [0, 1, 3] })
  const first = { ...loop, messages: loop.messages.slice(0, 2) }
  t.strictSame(marks(first), { tools: [1], messages: [0, 1] }, 'an agent that begins')
  const talk = {
    model: 'm',
    messages: [system, user('Hi'), { role: 'assistant', content: 'Ho' }, user('So?')],
  } as ChatRequest
  t.strictSame(marks(talk), { tools: [], messages: [0, 1, 3] })
  t.strictSame(marks(loop, at(converse)), { tools: [1], messages: [0, 1, 3] })
  const chinese = { model: 'm', messages: [user('漢'.repeat(1400)), call, result] }
  t.strictSame(marks(chinese), { tools: [], messages: [0, 2] }, 'by bytes')
})

t.test('nothing is marked where it would cost more than it saves, or was marked already', async t => {
  const none = { tools: [], messages: [] }
  const { tools: _, ...bare } = loop
  const rows: [says: string, request: ChatRequest, on?: ReturnType<typeof at>][] = [
    ['one question', { ...bare, messages: [system, user('Hi')] }],
    ['a short prompt', { model: 'm', messages: [user('Hi'), call, result] }],
    ['less than the provider caches', loop, at(messagesWire, { minCacheableTokens: 100_000 })],
    ['no price of reading', loop, at(messagesWire, { price: flat({ prompt: '3', completion: '1' }) })],
    [
      'a dear cache',
      loop,
      at(messagesWire, { price: flat({ prompt: '3', input_cache_read: '2.5', input_cache_write: '3.75' }) }),
    ],
    ['a model without a cache', loop, at(messagesWire, { supports: new Set() })],
    ['a provider that caches by itself', loop, at(openai.wires[0] as Translator<'chat'>)],
  ]
  for (const [says, request, on] of rows) t.strictSame(marks(request, on), none, says)
  const own = user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }])
  t.strictSame(marks({ ...loop, messages: [system, own, call, result] }), { tools: [], messages: [1] })
  t.equal(chat.adapted!(loop, at(messagesWire), false), loop, 'unless it is wanted')
})

t.test("the provider gets at most four, also in a client's own body", async t => {
  const on = at(messagesWire)
  const input = chat.adapted!(loop, on, true)
  const count = (body: unknown) => JSON.stringify(body).match(/"cache_control"/g)?.length ?? 0
  t.equal(count(messagesWire.encode(input, on, false).body), 4)
  t.equal(
    JSON.stringify(converse.encode(chat.adapted!(loop, at(converse), true), at(converse), false).body).match(
      /"cachePoint"/g,
    )?.length,
    4,
  )
  const turns = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'a', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'cold' }] },
  ]
  const body = { model: 'm', max_tokens: 9, system: long, messages: turns, tools: [{ name: 'a', input_schema: {} }] }
  t.equal(count(messagesWire.native!.encode(deepFreeze(body), input, on, false).body), 4)
  const marked = { ...body, cache_control: { type: 'ephemeral' } }
  t.equal(count(messagesWire.native!.encode(deepFreeze(marked), input, on, false).body), 1, 'its own mark stands')
})

t.test('the saving is reported with the cost', async t => {
  const ex = exchange({ request: loop, target: at(messagesWire) })
  Object.assign(ex.usage, { prompt: 1_000_000, completion: 0, input_cache_read: 900_000, input_cache_write: 100_000 })
  t.notOk('cache_saving' in JSON.parse(JSON.stringify(costDetails(ex.meter.cost, ex))))
  ex.outbound.autoCached = true
  // 3 USD in all without a cache; 0.27 for what was read and 0.375 for what was written with it.
  t.match(costDetails(ex.meter.cost, ex), { total_cost: 0.645, cache_saving: 2.355 })
})
