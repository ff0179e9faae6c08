/** Whose turns get kept reasoning back, and which turns do. */
import t from 'tap'
import type { Message } from '../../src/core/chat-request.ts'
import type { CachedReply, Principal, Services } from '../../src/core/ports.ts'
import { reasoning } from '../../src/filters/reasoning/index.ts'
import type { Json } from '../../src/json/json.ts'
import { eventsOf, exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { target } from '../plugins/wire-kit.ts'

const call = { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '{}' } }
const tools = [{ type: 'function', function: { name: 'f' } }]
const asked = { role: 'user', content: 'hi' }

/** With a memory of its own. */
function reasoningFilter() {
  const kept = new Map<string, CachedReply>()
  const turns = {
    find: (keys: readonly string[]) => new Map([...kept].filter(([key]) => keys.includes(key))),
    set: (key: string, reply: CachedReply) => void kept.set(key, reply),
  }
  return reasoning.create({ keep: 1000 }, { turns } as unknown as Services)
}

/** The turn of an assistant as a provider gets it, where its client sends `turn` back after a call with `args`. */
async function restored(args: string, turn: Json): Promise<Message> {
  const filter = reasoningFilter()
  const play = async (messages: object[]) => {
    const request = { model: 'm', messages, tools, reasoning_effort: 'high' }
    const ex = exchange({ request, principal: principalOf(), target: target() })
    const thought = { type: 'reasoning', choice: 0, text: 'Hm', format: 'x', block: 0 } as const
    const events = eventsOf([
      thought,
      { ...thought, text: '', signature: 's' },
      { type: 'tool', choice: 0, index: 0, id: call.id, name: 'f', args },
      { type: 'finish', choice: 0, reason: 'tool_calls' },
    ])
    const reply = await filter.handle!(ex, async () => ({ status: 200, headers: [], events }))
    for await (const batch of reply.events) void batch
    return ex.chat.messages
  }
  await play([asked])
  const messages = await play([
    asked,
    { role: 'assistant', ...turn },
    { role: 'tool', tool_call_id: call.id, content: '' },
  ])
  return messages[1]!
}
const signed = [{ type: 'reasoning.text', text: 'Hm', signature: 's', format: 'x', block_index: 0 }]

t.test('a turn whose client signs nothing gets its kept reasoning back', async t => {
  const rows: [says: string, turn: Json][] = [
    ['no details', {}],
    ['null', { reasoning_details: null }],
    ['an empty list', { reasoning_details: [] }],
    ['details without a signature', { reasoning_details: [{ type: 'reasoning.text', text: 'Hm', format: 'x' }] }],
    [
      'null for a signature',
      { reasoning_details: [{ type: 'reasoning.text', text: 'Hm', signature: null, data: null }] },
    ],
    ['empty extra content', { tool_calls: [{ ...call, extra_content: {} }] }],
    ['extra content of another kind', { tool_calls: [{ ...call, extra_content: { vendor: {} } }] }],
  ]
  for (const [says, turn] of rows) {
    t.strictSame((await restored('{}', { tool_calls: [call], ...turn })).reasoning_details, signed, says)
  }
  const own = [{ type: 'reasoning.text', text: 'Hm', signature: 'own' }]
  const whole = await restored('{}', { tool_calls: [call], reasoning_details: own })
  t.strictSame(whole.reasoning_details, own, 'signed details stay as they are')
})

t.test('kept reasoning is found however a client writes the arguments of its call', async t => {
  const args = '{"city":"Orléans","share":1e-7,"of":1.0,"in":{"b":[true,null],"a":"x y"}}'
  const rows: [says: string, args: string, found: boolean][] = [
    ['as they came', args, true],
    [
      'by json.dumps',
      '{"city": "Orl\\u00e9ans", "share": 1e-07, "of": 1.0, "in": {"b": [true, null], "a": "x y"}}',
      true,
    ],
    ['by JSON.stringify', JSON.stringify(JSON.parse(args)), true],
    ['in lines', JSON.stringify(JSON.parse(args), null, 2), true],
    ['in another order', '{"of":1,"city":"Orléans","in":{"a":"x y","b":[true,null]},"share":0.0000001}', true],
    ['other arguments', args.replace('x y', 'xy'), false],
  ]
  for (const [says, rewritten, found] of rows) {
    const turn = { tool_calls: [{ ...call, function: { name: 'f', arguments: rewritten } }] }
    t.strictSame((await restored(args, turn)).reasoning_details, found ? signed : undefined, says)
  }
  for (const odd of ['not json', '[1]', '"text"', '']) {
    const turn = { tool_calls: [{ ...call, function: { name: 'f', arguments: odd || '{}' } }] }
    t.strictSame((await restored(odd, turn)).reasoning_details, signed, `no object: ${odd}`)
  }
})

t.test('kept reasoning comes back to its project and its end user alone', async t => {
  const filter = reasoningFilter()
  /** What the turn before is said to have thought. */
  const thought = async (principal: Principal) => {
    const messages = [
      asked,
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: 'a' },
    ]
    const request = { model: 'm', messages, tools, reasoning_effort: 'high' }
    const ex = exchange({ request, principal, target: target() })
    const events = eventsOf([
      { type: 'reasoning', choice: 0, text: `thought of ${principal.session?.id ?? principal.projectId}` },
      { type: 'tool', choice: 0, index: 0, id: call.id, name: 'f', args: '{}' },
      { type: 'finish', choice: 0, reason: 'tool_calls' },
    ])
    const reply = await filter.handle!(ex, async () => ({ status: 200, headers: [], events }))
    for await (const batch of reply.events) void batch
    return ex.chat.messages[1]!.reasoning
  }
  const key = principalOf()
  const other = principalOf({ projectId: 'project-2' })
  const session = (id: string) => principalOf({ kind: 'session', session: { id, models: undefined } })
  t.equal(await thought(key), undefined)
  t.equal(await thought(key), 'thought of project-1')
  for (const [says, principal, own] of [
    ['another project', other, 'thought of project-2'],
    ['an end user', session('a'), 'thought of a'],
    ['another end user', session('b'), 'thought of b'],
  ] as const) {
    t.equal(await thought(principal), undefined, says)
    t.equal(await thought(principal), own, says)
  }
})
