/** Whose turns get kept reasoning back. */
import t from 'tap'
import type { CachedReply, Principal, Services } from '../../src/core/ports.ts'
import { reasoning } from '../../src/filters/reasoning/index.ts'
import { eventsOf, exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { target } from '../plugins/wire-kit.ts'

const call = { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '{}' } }
const tools = [{ type: 'function', function: { name: 'f' } }]
const asked = { role: 'user', content: 'hi' }

t.test('kept reasoning comes back to its project and its end user alone', async t => {
  const kept = new Map<string, CachedReply>()
  const turns = {
    find: (keys: readonly string[]) => new Map([...kept].filter(([key]) => keys.includes(key))),
    set: (key: string, reply: CachedReply) => void kept.set(key, reply),
  }
  const filter = reasoning.create({ keep: 1000 }, { turns } as unknown as Services)
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
