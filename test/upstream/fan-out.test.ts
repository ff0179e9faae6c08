/** What the parts of one request cost together (docs/contract.md#polled-answers). */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import { formatMoney, type Price } from '../../src/core/money.ts'
import type { FanOut } from '../../src/core/translator.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { RequestPart } from '../../src/core/wire.ts'
import { images } from '../../src/endpoints/inference.ts'
import { tooManyBytes, tooManyCalls } from '../../src/json/answer-bounds.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { partUsage } from '../../src/metering/meter.ts'
import { promptFanOut } from '../../src/operations/chat/index.ts'
import { BodyMemory } from '../../src/upstream/dispatch.ts'
import { fannedOut } from '../../src/upstream/fan-out.ts'
import { upstreamError } from '../../src/wire/upstream-error.ts'
import { type ExchangeFacts, exchange, text } from '../core/kit.ts'
import { base, flat, rates } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'

const used = (prompt: number, completion: number): Event => ({ type: 'usage', usage: { prompt, completion } })
const written: readonly Event[] = [used(100, 50), text('a'), { type: 'finish', choice: 0, reason: 'stop' }]
const refused: readonly Event[] = [used(400, 1), { type: 'finish', choice: 0, reason: 'content_filter', free: true }]
const request = { model: 'm', messages: [{ role: 'user', content: 'x' }] }

type Part = readonly Event[] | GatewayError
type PartCalls = Parameters<typeof fannedOut<Part>>[3]
/** Sends each part and gets what stands for it. */
const joined = (parts: readonly Part[], charge: PartCalls['charge'] = () => undefined) =>
  fannedOut(parts, promptFanOut, new Cancellation(), {
    charge,
    usageOf: () => ({ type: 'usage', usage: {} }),
    async send(part) {
      if (part instanceof GatewayError) throw part
      return part
    },
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
    ex.meter.complete(false)
    t.equal(formatMoney(ex.meter.cost!.total), cost)
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
  ['a part that finds no memory', [written, errors.overloaded()], errors.overloaded(), { prompt: 100, completion: 50 }],
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

t.test('what a part has written to no end is charged, and ends those alone that stand in its order', async t => {
  const error = tooManyCalls()
  const spoilt: readonly Event[] = [used(100, 3000), { type: 'error', error }]
  const { ordered: _, ...unordered } = promptFanOut
  const pictures: FanOut = { ...unordered, join: answers => answers.flat() }
  const sent: number[] = []
  const charges: unknown[] = []
  const send = (parts: readonly Part[], by: FanOut) =>
    fannedOut(parts, by, new Cancellation(), {
      charge: ({ usage }, thrown) => charges.push([usage, thrown]),
      usageOf: () => ({ type: 'usage', usage: {} }),
      async send(part) {
        sent.push(1)
        if (part instanceof GatewayError) throw part
        return part
      },
    })
  const six = [spoilt, ...Array.from({ length: 5 }, () => written)]
  const [report, ...rest] = await send(six, pictures)
  t.match(report, { usage: { prompt: 600, completion: 3250 } }, 'it is left out')
  t.strictSame([rest.length, sent.length, charges], [10, 6, []])
  sent.length = 0
  for (const first of [spoilt, filtered]) {
    await t.rejects(send([first, ...six, ...six, ...six], promptFanOut), {
      code: first === filtered ? filtered.code : error.code,
    })
    t.ok(sent.splice(0).length <= 8, 'prompts of which nothing can be returned are not sent')
  }
  charges.length = 0
  await t.rejects(send([spoilt, spoilt], pictures), error)
  await t.rejects(send([written, spoilt], promptFanOut), error)
  await t.rejects(send([spoilt, errors.truncated()], pictures), errors.truncated())
  t.strictSame(charges, [
    [{ prompt: 200, completion: 6000 }, error],
    [{ prompt: 200, completion: 3050 }, error],
  ])
})

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

t.test('a part that its provider has not counted is estimated, also beside parts that it has', async t => {
  const ex = exchange({ request, target: target({ mapping: { price: flat({ prompt: '1', completion: '2' }) } }) })
  const end: Event = { type: 'finish', choice: 0, reason: 'stop' }
  const parts: RequestPart[] = [40, 400].map(length => {
    const input = { ...request, messages: [{ role: 'user', content: 'x'.repeat(length) }] } as ChatRequest
    return { request: { path: '', body: {} }, input, characters: length }
  })
  const spoken = text('y'.repeat(80))
  const counted: Event = { type: 'usage', usage: { prompt: 7, completion: 5 } }
  const half: Event = { type: 'usage', usage: { prompt: 90 } }
  const rows: [says: string, second: readonly Event[], usage: Usage][] = [
    ['no report', [spoken, end], { prompt: 107, completion: 25 }],
    ['half a report', [spoken, half, end], { prompt: 97, completion: 25 }],
    ['a report', [spoken, counted, end], { prompt: 14, completion: 10 }],
    ['a refusal that is free', [{ ...end, free: true }], { prompt: 7, completion: 5 }],
  ]
  for (const [says, second, usage] of rows) {
    const [report] = await fannedOut(parts, promptFanOut, new Cancellation(), {
      charge: () => undefined,
      usageOf: partUsage.bind(undefined, ex),
      send: async part => (part === parts[0] ? [spoken, counted, end] : second),
    })
    const isEstimated = says.endsWith('no report') || says.startsWith('half')
    t.match(report, { usage, estimated: isEstimated || undefined }, says)
  }
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
    ex.meter.complete(false)
    t.equal(formatMoney(ex.meter.cost!.total), cost, says)
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
  ex.outbound.atProvider = true
  signal.abort(errors.aborted())
  ex.meter.complete(true)
  t.equal(formatMoney(ex.meter.cost!.total), '0.030003')
  t.end()
})

const gone = errors.aborted()
const crashed = upstreamError(500, { message: 'out of order' })
const closing: Event = { type: 'finish', choice: 0, reason: 'stop' }
/** How parts end whose caller leaves once all of the first four are sent, and what is charged then. */
const endings: [says: string, parts: Part[], atProvider: boolean, charged: Partial<Usage> | undefined][] = [
  ['some are answered', [written, gone, written, gone, gone], true, { prompt: 202, completion: 102 }],
  ['none are answered', [gone, gone, gone, gone, gone], true, { prompt: 4, completion: 4 }],
  [
    'answers come without a report',
    [[text('a'), closing], gone, refused, refused],
    true,
    { prompt: 12, completion: 2 },
  ],
  ['no provider has them', [gone, gone, gone, gone, gone], false, undefined],
  ['they are refused, free, or fail', [filtered, refused, crashed, gone], true, { prompt: 1, completion: 1 }],
  [
    'one has failed and is charged',
    [[used(100, 3000), { type: 'error', error: tooManyCalls() }], gone, refused, refused],
    true,
    { prompt: 101, completion: 3001 },
  ],
  ['all fail', [crashed, crashed, crashed, crashed], true, undefined],
]
for (const [says, parts, atProvider, charged] of endings) {
  t.test(`a caller that leaves pays for each part that its provider has: ${says}`, async t => {
    const signal = new Cancellation()
    const charges: unknown[] = []
    let sent = 0
    const calls: PartCalls = {
      charge: ({ usage }, error) => charges.push([usage, error]),
      // A token of each where nothing is seen, ten of the prompt and no other one where something is.
      usageOf: (_part, events) => {
        const seen = events.length > 0
        return { type: 'usage', usage: { prompt: seen ? 11 : 1, completion: 1 }, estimated: true }
      },
      async send(part, own, receipt) {
        receipt.atProvider = atProvider
        if (++sent === 4) signal.abort(gone)
        await new Promise<void>(resolve => own.listen(resolve))
        if (part instanceof GatewayError) throw part
        return part
      },
    }
    await t.rejects(fannedOut(parts, promptFanOut, signal, calls), gone)
    t.strictSame([charges, sent], [charged ? [[charged, gone]] : [], 4], 'the fifth is not sent')
  })
}

for (const [says, error, charged] of [
  ["the caller's", invalid, { prompt: 201, completion: 101 }],
  ['that there is no memory', errors.overloaded(), { prompt: 201, completion: 101 }],
  ["the provider's", crashed, undefined],
] as const) {
  t.test(`parts that run when another one fails are charged where the fault is ${says}`, async t => {
    const charges: unknown[] = []
    const calls: PartCalls = {
      charge: ({ usage }, thrown) => charges.push([usage, thrown]),
      usageOf: () => ({ type: 'usage', usage: { prompt: 1, completion: 1 }, estimated: true }),
      async send(part, own, receipt) {
        receipt.atProvider = true
        if (part === error) throw error
        await new Promise<void>(resolve => own.listen(resolve))
        if (part instanceof GatewayError) throw own.reason
        return part
      },
    }
    const parts = [written, gone, written, error, written]
    await t.rejects(fannedOut(parts, promptFanOut, new Cancellation(), calls), error)
    t.strictSame(charges, charged ? [[charged, error]] : [])
  })
}

t.test('a request that the gateway ends costs nothing, whatever of its parts was answered', async t => {
  const signal = new Cancellation()
  const calls: PartCalls = {
    charge: () => t.fail('it is charged'),
    usageOf: () => ({ type: 'usage', usage: {} }),
    async send(part, own, receipt) {
      receipt.atProvider = true
      if (part === written) return written
      await new Promise<void>(resolve => own.listen(resolve))
      throw own.reason
    },
  }
  const whole = fannedOut([written, gone], promptFanOut, signal, calls)
  const stops = errors.shuttingDown()
  signal.abort(stops)
  await t.rejects(whole, stops)
})

t.test('what fails before its caller leaves is charged as what fails', async t => {
  const signal = new Cancellation()
  const calls: PartCalls = {
    charge: () => t.fail(),
    usageOf: () => ({ type: 'usage', usage: {} }),
    async send(part, own, receipt) {
      receipt.atProvider = true
      if (part instanceof GatewayError) throw part
      await new Promise<void>(resolve => own.listen(resolve))
      signal.abort(gone)
      throw own.reason
    },
  }
  await t.rejects(fannedOut([written, crashed, written], promptFanOut, signal, calls), crashed)
})

t.test('what is read on ends when the gateway gives up', async t => {
  const signal = new Cancellation()
  let ended = 0
  const calls: PartCalls = {
    charge: () => undefined,
    usageOf: () => ({ type: 'usage', usage: {} }),
    send: (_part, own) =>
      new Promise((_resolve, reject) => {
        let times = 0
        own.listen(() => {
          if (++times === 2) reject(own.reason)
          else if (++ended === 2) signal.cut()
        })
      }),
  }
  const whole = fannedOut([written, written], promptFanOut, signal, calls)
  signal.abort(gone)
  await t.rejects(whole, gone)
})

t.test('the estimate of a part is that of an exchange which is the part alone', t => {
  const signal = new Cancellation()
  const draws = { request: { model: 'm', prompt: 'x'.repeat(400), n: 8 }, endpoint: images[0]! }
  const writes = {
    request: { model: 'm', messages: ['a', 'b'].map(content => ({ role: 'user', content })), prompts: true },
  }
  const price = flat(base)
  const perImage = { ...price, perImage: { default: 1n } }
  const rows: [facts: ExchangeFacts, part: object, events: readonly Event[], usage: Usage, by?: Price][] = [
    [draws, { ...draws.request, n: 1 }, [], { prompt: 100, output_images: 1, completion: 6300, image_output: 6300 }],
    [writes, { ...request, max_tokens: 10 }, [], { prompt: 1, completion: 0 }],
    [writes, { ...request, max_tokens: 10 }, [text('a'.repeat(12)), closing], { prompt: 1, completion: 3 }],
    [
      draws,
      { ...draws.request, n: 3 },
      [used(3, 7), { type: 'error', error: tooManyBytes() }],
      { prompt: 3, completion: 7, output_images: 3 },
      perImage,
    ],
    [
      writes,
      { ...request, max_tokens: 10 },
      [
        { type: 'usage', usage: {}, written: 40, estimated: true },
        { type: 'error', error: tooManyCalls() },
      ],
      { prompt: 1, completion: 10 },
    ],
  ]
  signal.abort(gone)
  for (const [facts, input, events, usage, by = price] of rows) {
    const ex = exchange({ ...facts, signal, target: target({ mapping: { price: by } }) })
    const part = { request: { path: '', body: {} }, input: input as ChatRequest, characters: 0 }
    const report = partUsage(ex, part, events)
    t.strictSame(report, { type: 'usage', usage, estimated: true })
  }
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
