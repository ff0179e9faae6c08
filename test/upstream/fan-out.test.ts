/** What the parts of one request cost together (docs/contract.md#polled-answers). */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { errors, GatewayError } from '../../src/core/error.ts'
import type { Event } from '../../src/core/event.ts'
import { MemoryBudget } from '../../src/core/memory-budget.ts'
import { formatMoney, type Price } from '../../src/core/money.ts'
import { upstreamError } from '../../src/core/upstream-error.ts'
import type { Usage } from '../../src/core/usage.ts'
import { promptFanOut } from '../../src/operations/chat/prompts.ts'
import { BodyMemory } from '../../src/upstream/body-memory.ts'
import { fannedOut } from '../../src/upstream/fan-out.ts'
import { exchange, text } from '../core/kit.ts'
import { base, flat, rates } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'

const used = (prompt: number, completion: number): Event => ({ type: 'usage', usage: { prompt, completion } })
const written: readonly Event[] = [used(100, 50), text('a'), { type: 'finish', choice: 0, reason: 'stop' }]
const refused: readonly Event[] = [used(400, 1), { type: 'finish', choice: 0, reason: 'content_filter', free: true }]
const request = { model: 'm', messages: [{ role: 'user', content: 'x' }] }

type Part = readonly Event[] | GatewayError
/** Sends each part and gets what stands for it. */
const joined = (parts: readonly Part[], charge: Parameters<typeof fannedOut>[3] = () => undefined) =>
  fannedOut(parts, promptFanOut, new Cancellation(), charge, async part => {
    if (part instanceof GatewayError) throw part
    return part
  })

for (const [says, parts, cost, prompt] of [
  ['an answer and a refusal', [written, refused], '0.00075', 100],
  ['a refusal and two answers', [refused, written, written], '0.0015', 200],
  ['refusals alone', [refused, refused], '0', 800],
] as const) {
  t.test(`${says}: a refusal without output costs nothing, and all else its price`, async t => {
    const ex = exchange({ request, target: target({ mapping: { price: flat(base) } }) })
    const events = await joined(parts)
    ex.observe(events)
    ex.completeUsage(false)
    t.equal(formatMoney(ex.cost!.total), cost)
    t.equal(ex.usage.prompt, prompt)
    t.strictSame(
      events.flatMap(event => (event.type === 'finish' ? [[event.choice, event.reason]] : [])),
      parts.map((part, at) => [at, part === refused ? 'content_filter' : 'stop']),
    )
  })
}

const invalid = upstreamError(400, { message: 'no such thing' })
const filtered = errors.contentFiltered('not this')
for (const [says, parts, error, charged] of [
  ['a part that is invalid', [written, refused, written, invalid], invalid, { prompt: 200, completion: 100 }],
  ['a part that is filtered', [filtered, written], filtered, { prompt: 100, completion: 50 }],
  ['only free answers', [refused, invalid], invalid, undefined],
  ['a failure of the provider', [written, errors.truncated()], errors.truncated(), undefined],
  ['an end that is no refusal of the provider', [written, errors.aborted()], errors.aborted(), undefined],
] as const) {
  t.test(`${says}: what answered is charged where the caller's fault ends the others`, async t => {
    const charges: unknown[] = []
    await t.rejects(
      joined(parts, ({ usage }, thrown) => charges.push([usage, thrown.code])),
      { code: error.code },
    )
    t.strictSame(charges, charged ? [[charged, error.code]] : [])
  })
}

t.test('what stands for a report in the price is summed as the report is', async t => {
  const report = (usage: Partial<Usage>, more: object): Event => ({ type: 'usage', usage, ...more })
  const end: Event = { type: 'finish', choice: 0, reason: 'stop' }
  const [first] = await joined([
    [report({ prompt: 100, completion: 5 }, { billed: { prompt: 10, input_cache_read: 0 } }), end],
    [report({ prompt: 30, completion: 7 }, { estimated: true }), end],
  ])
  t.strictSame(first, {
    type: 'usage',
    usage: { prompt: 130, completion: 12 },
    billed: { prompt: 40, completion: 12, input_cache_read: 0 },
    estimated: true,
    requests: { count: 2, longest: 100 },
  })
  const [plain] = await joined([written, written])
  t.strictSame(plain, { ...used(200, 100), requests: { count: 2, longest: 100 } })
})

t.test('parts cost what they would alone: each its request, and the rates of its own length', async t => {
  const price: Price = {
    rates: rates({ prompt: '1', completion: '2', request: '0.01' }),
    tiers: [{ above: 1000, rates: rates({ prompt: '10', completion: '20', request: '0.01' }) }],
  }
  const end: Event = { type: 'finish', choice: 0, reason: 'stop' }
  const answer = (prompt: number): readonly Event[] => [used(prompt, 50), text('a'), end]
  const rows: [says: string, parts: readonly Part[], cost: string][] = [
    ['short ones that are long together', [answer(800), answer(800)], '0.0218'],
    ['a long one', [answer(1200), answer(800)], '0.042'],
    ['one that is free', [answer(800), refused], '0.0109'],
  ]
  for (const [says, parts, cost] of rows) {
    const ex = exchange({ request, target: target({ mapping: { price } }) })
    ex.observe(await joined(parts))
    ex.completeUsage(false)
    t.equal(formatMoney(ex.cost!.total), cost, says)
  }
})

t.test('a client that leaves several requests pays the price of each', t => {
  const price = flat({ prompt: '1', completion: '2', request: '0.01' })
  const messages = ['aaaa', 'bbbb', 'cccc'].map(content => ({ role: 'user', content }))
  const signal = new Cancellation()
  const ex = exchange({
    request: { model: 'm', messages, prompts: true },
    target: target({ mapping: { price } }),
    signal,
  })
  ex.atProvider = true
  signal.abort(errors.aborted())
  ex.completeUsage(true)
  t.equal(formatMoney(ex.cost!.total), '0.030003')
  t.end()
})

t.test('as many bodies of one request are sent at the same time as memory has room for', async t => {
  const MIB = 1024 * 1024
  const budget = new MemoryBudget((20 * MIB * 8) / 7, { memory: () => 0 })
  const bodies = new BodyMemory(() => budget.lease('org'))
  const endings: (() => void)[] = []
  const began: number[] = []
  const send = (at: number) => () => {
    began.push(at)
    return new Promise<number>((resolve, reject) =>
      endings.push(() => (at === 1 ? reject(errors.truncated()) : resolve(at))),
    )
  }
  const all = [0, 1, 2, 3, 4].map(at => bodies.during(7 * MIB, send(at)))
  const outcomes = Promise.allSettled(all)
  const settled = () => new Promise(resolve => setImmediate(resolve))
  await settled()
  t.strictSame(began, [0, 1], 'the third has no room')
  endings.pop()!()
  await settled()
  t.strictSame(began, [0, 1, 2], 'until one has ended, whatever its end')
  while (endings.length > 0) {
    endings.pop()!()
    await settled()
  }
  t.strictSame(
    (await outcomes).map(one => (one.status === 'fulfilled' ? one.value : (one.reason as GatewayError).code)),
    [0, errors.truncated().code, 2, 3, 4],
  )
  t.equal(budget.used, 0)
  await t.rejects(bodies.during(21 * MIB, send(5)), { status: 529, code: 'overloaded' })
  t.equal(began.length, 5, 'one that never has room is refused')
})
