/** Memory of tool calls: each makes a server of the SDK, of which nothing may stay. */
import t from 'tap'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { callTool } from '../helpers/mcp.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { startUpstream } from '../helpers/upstream.ts'

const CALLS = 1000
const ROUNDS = 4
/** Of which one calls a model. */
const AT_ONCE = 20
const KB_PER_CALL = 1

t.test('SK-02 thousands of tool calls leave no slope of the heap', async t => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, {
    providers: { a: { base_url: upstream.url('a') } },
    env: inspected,
    config: { endpoints: { mcp: { ratelimit: { rpm: 100_000 } } } },
  })
  const chat = { model: 'test', messages: [{ role: 'user', content: 'hi' }] }
  const call = async (count: number) => {
    for (let made = 0; made < count; made += AT_ONCE) {
      const reads = Array.from({ length: AT_ONCE - 1 }, () => callTool(gateway, 'get-account'))
      await Promise.all([...reads, callTool(gateway, 'chat', chat)])
    }
  }
  // Loads the SDK, and fills caches.
  await call(CALLS)
  const before = await memory(gateway)
  await call(ROUNDS * CALLS)
  const after = await memory(gateway)
  const perCall = ((after.heap - before.heap) * 1024) / (ROUNDS * CALLS)
  figure(t, { id: 'SK-02', what: 'heap kept per tool call', value: perCall, unit: 'kB', atMost: KB_PER_CALL })
})
