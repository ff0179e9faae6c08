/** Money around an attempt: what is reserved, what is charged, and what happens when the ledger fails. */

import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { type Price, parseMoney } from '../../src/core/money.ts'
import type { Hold, HoldRequest, RequestRow, Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Mapping, Target, Translator } from '../../src/core/translator.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { CacheMark, RequestPart, SentOutput } from '../../src/core/wire.ts'
import { images as imageEndpoints, speech } from '../../src/endpoints/inference.ts'
import { billing } from '../../src/filters/billing/index.ts'
import { rowOf } from '../../src/filters/billing/row.ts'
import { admitSession } from '../../src/filters/billing/session-charges.ts'
import { sourceOf } from '../../src/filters/source.ts'
import { excessiveArguments, tooManyCalls } from '../../src/json/answer-bounds.ts'
import { CALL_BOUNDS, Shape } from '../../src/json/shape.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { eventsOf, exchange, principal, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'

const request = { model: 'acme-large', messages: [{ role: 'user', content: 'x'.repeat(40) }] }
const price = flat({ prompt: '1', completion: '2' })
const prompts = (length: number) => Array.from({ length }, () => ({ role: 'user', content: 'Hi' }))
const usage: Event = { type: 'usage', usage: { prompt: 10, completion: 5 } }
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }
/** Of arguments that no wire passes on. */
function nested(): Shape {
  const shape = new Shape(CALL_BOUNDS)
  shape.add('['.repeat(200))
  return shape
}
const broken: Event = { type: 'error', error: errors.truncated() }

const spent = { exhausted: 'credits', period: 'total', resetsAt: undefined, room: 0n, held: 0n }

type Act = 'hold' | 'settle' | 'void' | 'record'
/** Nano-USD that the payer has, and what runs out then; without it, enough. */
interface Purse {
  left: bigint
  of?: 'key'
}
/** A filter on a ledger that notes what it is asked, and fails or refuses where it is told to. */
function make(fails?: Act | 'insufficient', purse?: Purse) {
  const log: string[] = []
  const clock = { now: 5000 }
  const act = async (name: Act, note = '') => {
    log.push(`${name}${note}`)
    if (name === fails) throw errors.billingUnavailable(new Error('disk full'))
  }
  const take = (wanted: bigint) => {
    if (!purse) return { amount: wanted }
    const amount = wanted < purse.left ? wanted : purse.left
    const refused = { ...spent, exhausted: purse.of ?? 'credits', room: purse.left }
    purse.left -= amount
    return amount < wanted ? { amount, refused } : { amount }
  }
  const shown = (row: RequestRow) => ` ${row.outcome} ${row.status} ${row.cost}${row.estimated ? ' estimated' : ''}`
  const services = {
    now: () => clock.now,
    ledger: {
      hold: async ({ amount, least }: HoldRequest) => {
        await act('hold', ` ${amount}`)
        if (fails === 'insufficient') return spent
        const got = take(amount)
        return got.amount < least! ? { ...spent, ...got.refused } : { id: 'h', orgId: 'org-1', ...got }
      },
      extend: async (hold: Hold, { amount }: HoldRequest) => {
        const { amount: more, refused } = take(amount)
        log.push(`extend ${more}`)
        return { ...hold, amount: hold.amount + more, refused }
      },
      checkpoint: async () => undefined,
      settle: (_hold: unknown, row: RequestRow) => act('settle', shown(row)),
      void: () => act('void'),
      record: (row: RequestRow) => act('record', shown(row)),
    },
    log: { warn: (_fields: object, message: string) => log.push(`warn ${message}`) },
    metrics: {
      tokens: () => undefined,
      cost: (_provider: string, _model: string, usd: number) => log.push(`cost ${usd}`),
      unpriced: () => log.push('unpriced'),
    },
  }
  return {
    log,
    clock,
    filter: billing.create(
      { stream_hold: 100, least_output: 10, hold_unmeasured: true, storage: '0.01' },
      services as unknown as Services,
    ),
  }
}

interface Given {
  fails?: Act | 'insufficient'
  stream?: boolean
  mapping?: Partial<Mapping>
  /** The client goes away after so many batches. */
  gone?: number
  /** The provider had all of the request. */
  received?: true
  purse?: Purse
  request?: object
  /** What its wire does not carry. */
  sent?: SentOutput
  /** What a filter above makes of the events. */
  above?: (events: Reply['events']) => Reply['events']
}
/** Runs an exchange through billing as the pump does. Returns what it asked of the ledger, and how it ended. */
async function bill(
  reply: () => Promise<Reply>,
  { fails, stream = true, mapping, gone, received, purse, request: more, sent, above = events => events }: Given = {},
) {
  const { log, filter } = make(fails, purse)
  const signal = new Cancellation()
  const supports: Mapping['supports'] = new Set(['streaming'])
  const to = target({ mapping: { price, supports, maxOutput: 100, ...mapping } })
  const ex = exchange({ request: { ...request, ...more, stream }, target: to, principal, signal })
  const got: Event[] = []
  ex.outbound.output = sent
  ex.outbound.encode({ encode: () => void (ex.outbound.limit && log.push(`encoded for ${ex.outbound.limit.tokens}`)) })
  try {
    let batches = 0
    const answer = async () => {
      ex.outbound.atProvider = received === true
      if (gone === 0) signal.abort(errors.aborted())
      return reply()
    }
    for await (const batch of above((await filter.handle!(ex, answer)).events)) {
      ex.observe(batch)
      got.push(...batch)
      if (++batches === gone) signal.abort(errors.aborted())
      if (signal.reason) throw signal.reason
      if (ex.answer.failure) throw ex.answer.failure
    }
    ex.answer.outcome = 'ok'
  } catch (error) {
    ex.answer.failure = error as GatewayError
    ex.answer.outcome = ex.answer.failure.status === 499 ? 'aborted' : 'error'
  }
  await filter.finish!(ex, true)
  return { log, code: ex.answer.failure?.code, message: ex.answer.failure?.message, got, ex }
}
const answers =
  (...batches: Event[][]) =>
  async (): Promise<Reply> => ({ status: 200, headers: [], events: eventsOf(...batches) })

t.test('every app is counted under its name, though the name means something to JavaScript', async t => {
  const rows: [headers: Record<string, string>, app: string | null][] = [
    [{ 'x-source': 'constructor' }, 'constructor'],
    [{ 'x-source': 'toString' }, 'toString'],
    [{ referer: 'https://constructor/' }, 'constructor'],
    [{ 'http-referer': 'https://www.myapp.example/page' }, 'myapp.example'],
    [{ 'x-source': 'Claude-Code' }, 'claude.com/claude-code'],
    [{}, null],
  ]
  for (const [headers, app] of rows) t.equal(sourceOf(exchange({ headers })), app, JSON.stringify(headers))
})

t.test('a request is charged once: what it used, or what was delivered of it', async t => {
  // 10 tokens of prompt and 100 of completion at 1 and 2 USD a million.
  const HOLD = 'hold 210000'
  const used = ['settle ok 200 20000', 'cost 0.00002']
  const whole = answers([text('a')], [usage, finish])
  const cut = answers([text('x'.repeat(40))], [broken])
  const refused = () => Promise.reject(errors.unreachable('ECONNREFUSED'))
  const late = async (): Promise<Reply> => ({
    status: 200,
    headers: [],
    events: {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: [text('x'.repeat(40))] }),
        return: () => Promise.reject(errors.internal(new Error('the socket would not close'))),
      }),
    },
  })
  const rows: [says: string, log: string[], code: string | undefined, reply: () => Promise<Reply>, given?: Given][] = [
    ['a stream', [HOLD, ...used], undefined, whole],
    ['a whole answer', [HOLD, ...used], undefined, whole, { stream: false }],
    [
      'without a report',
      [HOLD, 'settle ok 200 12000 estimated', 'cost 0.000012'],
      undefined,
      answers([text('a'), finish]),
    ],
    ['an attempt that fails', [HOLD, 'void', 'record error 502 0'], 'fetch_failed', refused],
    [
      'a stream that breaks',
      [HOLD, 'settle error 502 30000 estimated', 'cost 0.00003'],
      'upstream_stream_truncated',
      cut,
    ],
    [
      'a whole answer that breaks',
      [HOLD, 'void', 'record error 502 0'],
      'upstream_stream_truncated',
      cut,
      { stream: false },
    ],
    [
      'a client that leaves',
      [HOLD, 'settle aborted 499 12000 estimated', 'cost 0.000012'],
      'request_cancelled',
      whole,
      { gone: 1 },
    ],
    [
      'a client that waits and leaves',
      [HOLD, 'void', 'record aborted 499 0'],
      'request_cancelled',
      whole,
      { gone: 1, stream: false },
    ],
    [
      'an upstream that does not let go',
      [HOLD, 'settle aborted 499 30000 estimated', 'cost 0.00003'],
      'request_cancelled',
      late,
      { gone: 1 },
    ],
    [
      'an unknown price',
      ['record error 402 0'],
      'billing_error',
      whole,
      { mapping: { price: undefined, unpriced: 'refuse' } },
    ],
    [
      'an unknown price that is allowed',
      ['hold 0', 'settle ok 200 null', 'unpriced'],
      undefined,
      whole,
      { mapping: { price: undefined } },
    ],
    ['no credits', [HOLD, 'record error 402 0'], 'billing_error', whole, { fails: 'insufficient' }],
    ['no ledger to hold', [HOLD, 'record error 503 0'], 'billing_unavailable', whole, { fails: 'hold' }],
    ['no ledger to settle', [HOLD, 'settle ok 200 20000'], 'billing_unavailable', whole, { fails: 'settle' }],
    [
      'no ledger to give back',
      [HOLD, 'void', 'warn hold release failed; the hold will expire', 'record error 502 0'],
      'fetch_failed',
      refused,
      { fails: 'void' },
    ],
  ]
  for (const [says, log, code, reply, given] of rows) {
    const got = await bill(reply, given)
    t.strictSame([...got.log].sort(), [...log].sort(), says, { log: got.log })
    t.equal(got.code, code, says)
  }
})

t.test('what is reserved is the most that the request may cost', async t => {
  const reserved = async (fields: object, mapping: Partial<Mapping> = {}) => {
    const { log, filter } = make()
    const ex = exchange({
      request: { ...request, ...fields },
      target: target({ mapping: { price, maxOutput: 100, ...mapping } }),
      principal,
    })
    await filter.handle!(ex, answers([]))
    return log[0]
  }
  const supports: Mapping['supports'] = new Set(['streaming'])
  const picture = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } }
  const file = { type: 'file', file: { file_data: `data:application/pdf;base64,${'A'.repeat(29_304)}` } }
  const speech = { type: 'input_audio', input_audio: { format: 'mp3', data: 'A'.repeat(16_000) } }
  const usd = (amount: string) => `hold ${parseMoney(amount)}`
  const rows: [says: string, fields: object, mapping: Partial<Mapping>, amount: string][] = [
    ['all that the model may write', {}, {}, '0.00021'],
    ['max_tokens', { max_tokens: 1000 }, { maxOutput: 5000 }, '0.00201'],
    ['no more than the model writes', { max_tokens: 1e12 }, { maxOutput: 50 }, '0.00011'],
    ['every choice', { max_tokens: 10, n: 3 }, {}, '0.00007'],
    ['a model that writes less than the default', {}, { maxOutput: 50 }, '0.00011'],
    ['a stream', { stream: true, max_tokens: 1000 }, { maxOutput: 5000, supports }, '0.00021'],
    [
      'a stream that cannot be ended',
      { stream: true, max_tokens: 1000 },
      { maxOutput: 5000, supports, cancellable: false },
      '0.00201',
    ],
    ['a stream of little', { stream: true, max_tokens: 10 }, { maxOutput: 5000, supports }, '0.00003'],
    ['a stream that its provider does not stream', { stream: true }, { maxOutput: 300 }, '0.00061'],
    ['pictures', { messages: [{ role: 'user', content: [picture, picture] }] }, {}, '0.0034'],
    [
      'no more than the model reads',
      { messages: [{ role: 'user', content: [picture] }] },
      { contextLength: 500 },
      '0.0007',
    ],
    ['a file that does not say its size', { messages: [{ role: 'user', content: [file] }] }, {}, '0.001574'],
    ['speech', { messages: [{ role: 'user', content: [speech] }] }, {}, '0.000296'],
  ]
  for (const [says, fields, mapping, amount] of rows) t.equal(await reserved(fields, mapping), usd(amount), says)
})

t.test('what may be written to a cache is held for at that price, and charged where nothing is reported', async t => {
  const marking = { wire: 'acme.chat', op: 'chat', cacheMarks: true } as Translator
  const all = { prompt: '1', completion: '0', input_cache_write: '1.25', input_cache_write_1h: '12' }
  const { input_cache_write_1h: _, ...one } = all
  const free = { ...all, input_cache_write: '0' }
  const dear = flat({ ...all, input_cache_write: '3' })
  interface Facts {
    mark?: CacheMark
    /** The provider caches by itself. */
    unmarked?: true
    content?: unknown
    least?: number
  }
  const long = { unmarked: true, content: 'x'.repeat(4096) } as const
  /** Of the prompt, which has 10 tokens, or 1024. */
  const rows: [says: string, usd: string, price: Price, facts: Facts][] = [
    ['without a mark', '0.00001', flat(all), {}],
    ['for five minutes', '0.0000125', flat(all), { mark: '5m' }],
    ['for an hour', '0.00012', flat(all), { mark: '1h' }],
    ['for an hour, at the only price', '0.0000125', flat(one), { mark: '1h' }],
    ['at a lower price than it is read', '0.00001', flat(free), { mark: '5m' }],
    ['without a price', '0.00001', flat({ prompt: '1', completion: '0' }), { mark: '1h' }],
    [
      'at the price of a long prompt',
      '0.00003',
      { ...flat(all), tiers: [{ above: 9, rates: dear.rates }] },
      { mark: '5m' },
    ],
    ['by itself', '0.00128', flat(all), long],
    ['by itself for nothing', '0.001024', flat(free), long],
    ['by itself, but not of a short prompt', '0.00001', flat(all), { unmarked: true }],
    ['nor of one that is short for its model', '0.001024', flat(all), { ...long, least: 1025 }],
  ]
  for (const [says, usd, price, { mark, unmarked, content = request.messages[0]!.content, least }] of rows) {
    const { log, filter } = make()
    const signal = new Cancellation()
    const mapping: Partial<Mapping> = { price, minCacheableTokens: least }
    const to = target(unmarked ? { mapping } : { mapping, translator: marking })
    const ex = exchange({
      request: { ...request, messages: [{ role: 'user', content }] },
      target: to,
      principal,
      signal,
    })
    ex.outbound.cacheMark = mark
    const left = async () => {
      ex.outbound.atProvider = true
      signal.abort(errors.aborted())
      throw errors.aborted()
    }
    await t.rejects(filter.handle!(ex, left))
    const amount = parseMoney(usd)
    t.strictSame(log.slice(0, 2), [`hold ${amount}`, `settle aborted 499 ${amount} estimated`], says)

    const reported = exchange({ request: ex.request!, target: to, principal })
    reported.outbound.cacheMark = mark
    const { events } = await filter.handle!(reported, answers([usage], [finish]))
    for await (const batch of events) reported.observe(batch)
    t.ok(log.includes('settle ok 200 10000'), `${says}: a report counts`, { log })
  }
  const short = {
    request: { ...request, prompts: true, messages: Array(200).fill({ role: 'user', content: 'x'.repeat(40) }) },
  }
  const many = make()
  await many.filter.handle!(
    exchange({ ...short, target: target({ mapping: { price: flat(all) } }), principal }),
    answers([]),
  )
  t.equal(many.log[0], `hold ${parseMoney('0.002544')}`, 'none of many short prompts')

  const { log, filter } = make()
  const reads = exchange({ request, target: target({ mapping: { price: flat(all) } }), principal })
  reads.input.native = { wire: 'acme.chat', body: {}, pages: 1 }
  await filter.handle!(reads, answers([]))
  t.equal(log[0], `hold ${parseMoney('0.0300125')}`, 'with what a tool of the provider may read')
})

t.test('an answer tells the cost that it is charged, also where its estimate came to more than was held', async t => {
  const reports: readonly [says: string, usage: Partial<Usage>, more?: Partial<Price['rates']>][] = [
    ['a long prompt', { prompt: 1000 }],
    ['a long prompt, some of it cached', { prompt: 1000, input_cache_read: 900 }, { input_cache_read: 500_000n }],
    ['more output than was asked for', { completion: 400 }],
  ]
  for (const [says, report, more] of reports) {
    for (const stream of [true, false]) {
      const mapping = { price: { ...price, rates: { ...price.rates, ...more } } }
      const batches: Event[][] = [[text('a')], [{ type: 'usage', usage: report }, finish]]
      const { ex, log } = await bill(answers(...batches), { stream, mapping })
      const settled = log.find(line => line.startsWith('settle'))
      t.equal(settled, 'settle ok 200 210000 estimated', says)
      const { total, input, cachedInput, cacheWrite, output, request, webSearch } = ex.meter.cost!
      t.equal(total, 210_000n, `${says}, stream: ${stream}`)
      t.equal(input + cachedInput + cacheWrite + output + request + webSearch, total, 'the parts are its sum')
      t.ok(log.includes('cost 0.00021'), `${says}: so do the metrics`)
    }
  }
})

t.test('each hold of a request has an id of its own, also after an attempt of which nothing was sent', async t => {
  const ids: string[] = []
  const ledger = {
    hold: async ({ id, amount }: HoldRequest) => {
      ids.push(id)
      return { id, orgId: 'org-1', amount }
    },
    // It ends later than the next hold begins, as on another connection.
    void: () => new Promise(() => undefined),
    settle: async (hold: Hold) => void ids.push(`settled ${hold.id}`),
  }
  const options = { stream_hold: 100, least_output: 10, hold_unmeasured: true, storage: '0.01' }
  const metrics = { tokens: () => undefined, cost: () => undefined }
  const filter = billing.create(options, { ledger, metrics, now: () => 5000 } as unknown as Services)
  const snapshot = { realtime: { session: 1000 } as never }
  const ex = exchange({ request, target: target({ mapping: { price } }), principal, snapshot })
  for (const failure of [errors.providerBusy('a'), errors.unreachable('ECONNREFUSED')]) {
    await t.rejects(async () => filter.handle!(ex, () => Promise.reject(failure)), failure)
  }
  const reply = await filter.handle!(ex, answers([text('a')], [usage, finish]))
  for await (const batch of reply.events) ex.observe(batch)
  t.strictSame(ids, [`${ex.logId}:0`, `${ex.logId}:1`, `${ex.logId}:2`, `settled ${ex.logId}:2`])

  ids.length = 0
  const services = { ledger, metrics, now: () => 5000 } as unknown as Services
  for (const failure of [errors.providerBusy('a'), errors.unreachable('ECONNREFUSED')]) {
    const open = () => admitSession(ex, { storageRate: 0n, leastOutput: 10 }, services, () => Promise.reject(failure))
    await t.rejects(open, failure)
  }
  t.strictSame(ids, [`${ex.logId}:0`, `${ex.logId}:1`], 'also of a session')
})

t.test('a caller that leaves early pays for what the provider does', async t => {
  const answered = answers([text('a')], [usage, finish])
  const lost = () => Promise.reject(errors.aborted())
  const picture = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } }
  const content = [picture, picture]
  const rows: [says: string, settled: string, reply: () => Promise<Reply>, given: Given][] = [
    ['a stream whose report still comes', 'aborted 499 20000', answered, { gone: 1 }],
    ['a whole answer whose report still comes', 'aborted 499 20000', answered, { gone: 1, stream: false }],
    ['an answer that does not come', 'aborted 499 10000 estimated', lost, { gone: 0, stream: false }],
    ['a stream without a report', 'aborted 499 12000 estimated', answers([text('a')], [text('b')]), { gone: 1 }],
    [
      'a stream that would cost more than there is',
      'aborted 499 20000 estimated',
      answers(
        [text('a')],
        [text('a'.repeat(4000)), { type: 'usage', usage: { prompt: 10, completion: 1000 } }, finish],
      ),
      { gone: 1, purse: { left: 20_000n } },
    ],
    [
      'pictures that were sent',
      'aborted 499 3202000 estimated',
      answers([text('a')]),
      { gone: 1, request: { messages: [{ role: 'user', content }] } },
    ],
  ]
  for (const [says, settled, reply, given] of rows) {
    const { log } = await bill(reply, { received: true, ...given })
    t.ok(log.includes(`settle ${settled}`), says, { log })
  }
  const { log } = await bill(lost, { gone: 0, stream: false })
  t.ok(log.includes('void'), 'whose request had not been sent whole pays nothing', { log })
})

t.test('what answered of a request is charged where its caller keeps the rest from being answered', async t => {
  for (const stream of [false, true]) {
    const { log, filter } = make()
    const to = target({ mapping: { price, supports: new Set(['streaming']), maxOutput: 100 } })
    const ex = exchange({ request: { ...request, stream }, target: to, principal })
    const error = errors.contentFiltered('not this')
    const reply = async () => {
      ex.answeredInPart({ type: 'usage', usage: { prompt: 10, completion: 5 } }, error)
      throw error
    }
    await t.rejects(filter.handle!(ex, reply), error)
    await filter.finish!(ex, true)
    t.strictSame(log, ['hold 210000', 'settle error 400 20000', 'cost 0.00002'])
  }
})

t.test('an answer whose tool calls pass a bound is charged by an estimate, and no other provider is tried', async t => {
  for (const error of [tooManyCalls(), excessiveArguments(nested())]) {
    t.notOk(error.failover, error.message)
    for (const stream of [false, true]) {
      const { log } = await bill(async () => Promise.reject(error), { received: true, stream })
      t.strictSame(log, ['hold 210000', 'settle error 502 10000 estimated', 'cost 0.00001'])
    }
  }
})

t.test('an answer that fails by what its caller had written costs what was reported, or what came', async t => {
  const rows: [says: string, events: readonly Event[], charged: string][] = [
    ['a report', [usage], '20000'],
    ['a report before what it counts', [usage, text('x'.repeat(400))], '20000'],
    ['text without a report', [text('x'.repeat(40))], '30000 estimated'],
    ['what is in no event', [{ type: 'usage', usage: {}, written: 40, estimated: true }], '30000 estimated'],
    ['a report that cannot be', [{ type: 'usage', usage: { prompt: 10, completion: 1e8 } }], '210000 estimated'],
  ]
  for (const [says, events, charged] of rows) {
    for (const stream of [false, true]) {
      const { log, filter } = make()
      const to = target({ mapping: { price, supports: new Set(['streaming']), maxOutput: 100 } })
      const ex = exchange({ request: { ...request, stream }, target: to, principal })
      const error = tooManyCalls()
      const reply = async () => {
        ex.failedWith(events, error)
        throw error
      }
      await t.rejects(filter.handle!(ex, reply), error)
      await filter.finish!(ex, true)
      t.equal(log[1], `settle error 502 ${charged}`, says)
    }
  }
})

t.test('an answer that shows nothing before its client leaves costs its prompt, however long it took', async t => {
  for (const supports of [['streaming', 'reasoning'], ['reasoning'], []] as const) {
    const { filter, log } = make(undefined, { left: parseMoney('1') })
    const signal = new Cancellation()
    const to = target({ mapping: { price, supports: new Set(supports), maxOutput: 100_000 } })
    const ex = exchange({ request: { ...request, stream: true }, target: to, principal, signal })
    const reply = async () => {
      ex.outbound.atProvider = true
      ex.timings.sent = performance.now() - 60_000
      signal.abort(errors.aborted())
      throw errors.aborted()
    }
    await t.rejects(filter.handle!(ex, reply))
    t.ok(log.includes('settle aborted 499 10000 estimated'), { log })
  }
})

t.test('a stream goes on as long as its hold can grow, and ends in order where it cannot', async t => {
  const tens = Array.from({ length: 50 }, () => [text('x'.repeat(40))])
  const whole = answers(...tens, [usage, finish])
  const length = { type: 'finish', choice: 0, reason: 'length' }
  const rows: [says: string, purse: Purse | undefined, tokens: number, by: string | undefined][] = [
    ['with enough', undefined, 500, undefined],
    ['with credit for 200 tokens', { left: 410_000n }, 200, 'credit'],
    ['with credit for 137 tokens', { left: 284_000n }, 130, 'credit'],
    ['with a limit', { left: 410_000n, of: 'key' }, 200, 'limit'],
  ]
  for (const [says, purse, tokens, by] of rows) {
    const { got, ex, log, code } = await bill(whole, { ...(purse && { purse }), mapping: { maxOutput: 100_000 } })
    const said = got.flatMap(event => (event.type === 'text' ? event.text : [])).join('')
    t.equal(said.length / 4, tokens, says)
    t.match(got.at(-1), by ? length : finish, says)
    t.strictSame([ex.answer.stoppedBy, code], [by, undefined], says)
    const cost = by ? `settle ok 200 ${(10 + tokens * 2) * 1000} estimated` : 'settle ok 200 20000'
    t.ok(log.includes(cost), says, { log })
  }
  const bounded = await bill(whole, {
    purse: { left: 1_010_000n },
    request: { max_tokens: 500 },
    mapping: { maxOutput: 100_000 },
  })
  t.match(
    [bounded.ex.answer.stoppedBy, bounded.got.at(-1)],
    [undefined, finish],
    'the limit of the caller needs no more',
  )
})

t.test('a stream that has used up its hold goes on where there is money again by then', async t => {
  const rows: [says: string, left: bigint, again: number, tokens: number, extensions: number][] = [
    ['its first hold was short', 110_000n, 3, 500, 5],
    ['its first hold was short, and nothing comes', 110_000n, 50, 50, 1],
    ['it could not grow', 284_000n, 11, 500, 5],
    ['it could not grow, and nothing comes', 284_000n, 50, 130, 2],
    ['there is some again, but not enough', 110_000n, 3, 100, 2],
  ]
  for (const [says, left, again, tokens, extensions] of rows) {
    const purse: Purse = { left }
    const more = says.includes('some') ? 100_000n : 10_000_000n
    async function* events(): Reply['events'] {
      for (let at = 0; at < 50; at++) {
        if (at === again) purse.left += more
        yield [text('x'.repeat(40))]
      }
      yield [usage, finish]
    }
    const reply = async (): Promise<Reply> => ({ status: 200, headers: [], events: events() })
    const { got, ex, log } = await bill(reply, { purse, mapping: { maxOutput: 100_000 } })
    const said = got.flatMap(event => (event.type === 'text' ? event.text : [])).join('')
    t.strictSame([said.length / 4, ex.answer.stoppedBy], [tokens, tokens < 500 ? 'credit' : undefined], says)
    t.equal(
      log.filter(line => line.startsWith('extend')).length,
      extensions,
      `${says}: no more than once it is used up`,
    )
  }
})

t.test('what a filter above keeps of a stream grows its hold, and is cut, as what is shown', async t => {
  const keeps = async function* (events: Reply['events']): Reply['events'] {
    const all: Event[] = []
    for await (const batch of events) all.push(...batch)
    yield all
  }
  const tens = Array.from({ length: 50 }, () => [text('x'.repeat(40))])
  const given = { mapping: { maxOutput: 100_000 }, received: true } as const
  for (const left of [1_000_000_000n, 410_000n, 284_000n]) {
    const run = (more: Given) => bill(answers(...tens, [usage, finish]), { ...given, purse: { left }, ...more })
    const kept = await run({ above: keeps })
    const shown = await run({})
    t.strictSame([kept.log, kept.got, kept.ex.usage], [shown.log, shown.got, shown.ex.usage])
  }
  const { log } = await bill(answers(...tens), { ...given, above: keeps, gone: 1 })
  t.ok(log.includes('settle ok 200 1010000 estimated'), 'without a report all of it is charged', { log })
})

t.test('what a provider counts while it answers grows the hold, and is charged when the client leaves', async t => {
  const counted = (completion: number): Event => ({ type: 'progress', usage: { completion } })
  const given = { mapping: { maxOutput: 100_000 }, received: true } as const
  const thinks = answers([text('a'), counted(90)], [text('b'), counted(700)], [text('c'), counted(800)])
  const left = await bill(thinks, { ...given, gone: 2 })
  t.match(left.log.at(-2), 'settle aborted 499 1610000 estimated', 'what is read on is counted, too')
  const poor = await bill(thinks, { ...given, gone: 2, purse: { left: 410_000n } })
  t.match(poor.log.at(-2), 'settle aborted 499 410000 estimated', 'and costs no more than there is')
  const cut = await bill(thinks, { ...given, purse: { left: 410_000n } })
  t.strictSame(
    [cut.ex.answer.stoppedBy, cut.got.at(-1)?.type],
    ['credit', 'finish'],
    'an answer beyond the hold is cut',
  )
  const whole = await bill(answers([text('a'), counted(900)], [usage, finish]), given)
  t.ok(whole.log.includes('settle ok 200 20000'), 'its report stands for what was counted', { log: whole.log })
})

t.test('what the wire does not carry is held for as it may come', async t => {
  const none = { limit: Number.POSITIVE_INFINITY }
  const given = { mapping: { maxOutput: 1000 }, request: { max_tokens: 1 } }
  const reply = answers([text('a')], [usage, finish])
  const holds = (tokens: number) => `hold ${(10 + 2 * tokens) * 1000}`
  const rows: [says: string, sent: SentOutput | undefined, stream: boolean, held: number][] = [
    ['a limit', undefined, false, 1],
    ['no limit', none, false, 1000],
    ['a limit that the wire raises', { limit: 16 }, false, 16],
    ['no limit of a stream, which can be cut', none, true, 100],
    ['no stream, but a limit', { whole: true }, true, 1],
    ['neither', { ...none, whole: true }, true, 1000],
    ['reasoning beside the limit', { limits: 2 }, false, 2],
    ['the same of a stream', { limits: 2 }, true, 2],
  ]
  for (const [says, sent, stream, held] of rows) {
    const { log, code } = await bill(reply, { ...given, stream, ...(sent && { sent }) })
    t.strictSame([log[0], code], [holds(held), undefined], says)
  }
  const whole = await bill(reply, { mapping: { maxOutput: 1000 }, sent: { whole: true } })
  t.equal(whole.log[0], holds(1000), 'a stream that comes whole cannot be cut')

  const poor = () => ({ ...given, stream: false, purse: { left: 1_000_000n } })
  const refused = await bill(reply, { ...poor(), sent: none })
  t.match(
    [refused.ex.answer.failure?.status, refused.ex.answer.failure?.failover],
    [402, true],
    'another provider may serve it',
  )
  t.match(refused.message, /takes no output limit/)
  t.notOk(
    refused.log.some(line => line.startsWith('encoded')),
    'no limit is sent in its place',
  )
  const limited = await bill(reply, { ...poor(), request: {} })
  t.ok(limited.log.includes('encoded for 495'), 'where one can be, it is', { log: limited.log })
  const halved = await bill(reply, { ...poor(), request: {}, sent: { limits: 2 }, purse: { left: 2_000_000n } })
  t.ok(halved.log.includes('encoded for 497'), 'which buys half as much beside reasoning', { log: halved.log })

  const grows = answers(...Array.from({ length: 150 }, () => [text('x'.repeat(40))]), [finish])
  const { log } = await bill(grows, { mapping: { maxOutput: 1000 }, sent: none })
  t.ok(log.includes('settle ok 200 3010000 estimated'), 'beyond what the model is said to write its hold grows', {
    log,
  })
})

t.test('images of a stream grow its hold, as text does', async t => {
  const image: Event = { type: 'image', choice: 0, url: 'data:image/png;base64,AAAA' }
  const given = { mapping: { price: flat({ prompt: '1', completion: '2', image_output: '2' }), maxOutput: 100_000 } }
  const all = answers([image], [image], [image], [usage, finish])
  for (const [left, images] of [
    [10_000_000n, 3],
    [6_000_000n, 2],
  ] as const) {
    const { got, ex } = await bill(all, { ...given, purse: { left } })
    t.equal(got.filter(({ type }) => type === 'image').length, images)
    t.equal(ex.answer.stoppedBy, images < 3 ? 'credit' : undefined)
  }
})

t.test('a part of a session whose report has no price costs what was held for it', async t => {
  const settled: [cost: bigint | null, estimated: boolean][] = []
  const hour = flat({ input_audio_hour: '0.36' })
  const rows: [says: string, price: typeof hour, held: Usage, used: Usage, expected: (typeof settled)[number]][] = [
    ['its own', hour, { input_audio_hour: 1 }, { input_audio_hour: 0.5 }, [180_000_000n, false]],
    ['tokens of one by the hour', hour, { input_audio_hour: 1 }, { prompt: 10, completion: 5 }, [360_000_000n, true]],
    ['nothing was held for', hour, {}, { prompt: 10, completion: 5 }, [null, false]],
  ]
  for (const [says, price, held, used, expected] of rows) {
    const to = target({ mapping: { price } })
    const services = {
      now: () => 5000,
      realtimeSecrets: { live: async () => principal },
      ledger: {
        hold: async ({ amount }: HoldRequest) => ({ id: 'h', orgId: 'org-1', amount, funds: 'credits', budgets: null }),
        void: async () => undefined,
        settle: async (_: Hold, { cost, estimated }: RequestRow) => void settled.push([cost, estimated]),
      },
      metrics: { tokens: () => undefined, cost: () => undefined, unpriced: () => undefined },
    }
    const ex = exchange({
      request,
      target: { ...to, price },
      principal,
      snapshot: { realtime: { session: 1000 } as never },
    })
    const done = async (): Promise<Reply> => ({ status: 101, headers: [], events: eventsOf() })
    await admitSession(ex, { storageRate: 0n, leastOutput: 256 }, services as unknown as Services, done)
    const part = await ex.charges!.hold(held)
    await part.settle({ id: 'transcript:a', usage: used, estimated: false, outcome: 'ok', at: 0 })
    t.strictSame(settled.pop(), expected, says)
  }
})

t.test('a response of a session has the output that there is money for, from the least on', async t => {
  const price = flat({ prompt: '1', completion: '4', input_audio: '8', output_audio: '64' })
  const expected = { prompt: 100, input_audio: 50, completion: 4096, output_audio: 4096 }
  const prompt = 50_000n + 400_000n
  const rows: [left: bigint, expected: Usage, output: number | string][] = [
    [10n ** 9n, expected, 4096],
    [prompt + 300n * 64_000n, expected, 300],
    [prompt + 256n * 64_000n, expected, 256],
    [prompt + 256n * 64_000n - 1n, expected, '402 insufficient_credits affords max_output_tokens of 255 at most'],
    [prompt - 1n, expected, '402 insufficient_credits does not cover its prompt'],
    [prompt + 10n * 64_000n, { ...expected, completion: 10, output_audio: 10 }, 10],
    [100_000n + 300n * 4_000n, { prompt: 100, completion: 4096 }, 300],
  ]
  for (const [left, usage, output] of rows) {
    const services = {
      now: () => 5000,
      realtimeSecrets: { live: async () => principal },
      ledger: {
        hold: async ({ amount, least = amount }: HoldRequest) =>
          left < least ? { ...spent, room: left } : { id: 'h', orgId: 'org-1', amount: left < amount ? left : amount },
        void: async () => undefined,
      },
    }
    const snapshot = { realtime: { session: 1000 } as never }
    const ex = exchange({ request, target: { ...target({ mapping: { price } }), price }, principal, snapshot })
    const done = async (): Promise<Reply> => ({ status: 101, headers: [], events: eventsOf() })
    await admitSession(ex, { storageRate: 0n, leastOutput: 256 }, services as unknown as Services, done)
    const said = ({ status, code, message }: GatewayError) => `${status} ${code} ${message}`
    const got = await ex.charges!.holdResponse(usage).then(part => part.output, said)
    if (typeof output === 'number') t.equal(got, output)
    else t.match(got, new RegExp(output.replace(' insufficient_credits', ' insufficient_credits .*')))
  }
})

t.test('what is made whole at once is held for whole, though it is streamed', async t => {
  const held = async (fields: object, to: Target, parts?: readonly RequestPart[]) => {
    const { log, filter } = make()
    const ex = exchange({ request: { ...request, ...fields, stream: true }, target: to, principal })
    if (parts) ex.outbound.parts = parts
    await filter.handle!(ex, answers([]))
    return log[0]
  }
  const supports: Mapping['supports'] = new Set(['streaming'])
  const of = (mapping: Partial<Mapping>) => target({ mapping: { supports, maxOutput: 1000, ...mapping } })
  const twenty = Array.from({ length: 20 }, () => ({}) as RequestPart)
  const several = { messages: prompts(20), prompts: true }
  t.equal(await held(several, of({ price }), twenty), `hold ${20 * 1000 * 2000 + 10 * 1000}`, 'several prompts')
  const draws = of({ price: flat({ prompt: '1', image_output: '30' }), parameters: new Set(['quality']) })
  const model = { ...draws.mapping.model, output: ['image'] }
  const bridged = { ...draws.translator, bridged: true } as const
  const to = { ...draws, mapping: { ...draws.mapping, model }, translator: bridged }
  const pictures = { image_config: { n: 10, image_quality: 'high' } }
  t.equal(await held(pictures, to), `hold ${10 * 6300 * 30_000 + 10 * 1000}`, 'images in a chat')
})

t.test('a part of a session whose model the rules deny by then is refused, also that of its transcripts', async t => {
  const services = {
    now: () => 5000,
    realtimeSecrets: { live: async () => principal },
    ledger: { hold: async () => ({ id: 'h', orgId: 'org-1', amount: 1n }), void: async () => undefined },
  }
  const ex = exchange({ request, target: target({ mapping: { price } }), principal })
  Object.assign(ex, { snapshot: { realtime: { session: 1000 } } })
  const done = async (): Promise<Reply> => ({ status: 101, headers: [], events: eventsOf() })
  await admitSession(ex, { storageRate: 0n, leastOutput: 256 }, services as object as Services, done)
  const transcribing = target({ mapping: { price, externalId: 'ears' } }).mapping
  const issue = (mapping: Mapping) => (mapping === transcribing ? { kind: 'iam', reason: 'ears is denied' } : undefined)
  Object.assign(ex.caller, { access: { issue } })
  await ex.charges!.hold({ prompt: 1 })
  await t.rejects(ex.charges!.hold({ prompt: 1 }, transcribing), { status: 403, message: 'ears is denied.' })
})

t.test('images that a model may write text beside are held for with that, or with what there is money for', async t => {
  const sent = { limit: 14_492, least: 6_300, whole: true } as const
  const model = { ...target({}).mapping.model, output: ['text', 'image'] }
  const drawn = async (prices: Parameters<typeof flat>[0], left: bigint, more: Partial<Target['translator']> = {}) => {
    const { log, filter } = make(undefined, { left })
    const plain = target({ mapping: { price: flat(prices), model } })
    const to = { ...plain, translator: { ...plain.translator, ...more } }
    const request = { model: 'acme-large', prompt: 'x'.repeat(40), n: 1, stream: false }
    const ex = exchange({ endpoint: imageEndpoints[0]!, request, target: to, principal })
    ex.outbound.output = sent
    ex.outbound.encode({
      encode: () => void (ex.outbound.limit && log.push(`encoded for ${ex.outbound.limit.tokens}`)),
    })
    const reply = filter.handle!(ex, answers([]))
    await reply.catch((error: GatewayError) => log.push(`${error.status} ${error.message}`))
    return log.slice(0, 2)
  }
  const much = 10n ** 12n
  const text = { prompt: '1', completion: '10' }
  t.strictSame(await drawn(text, much), [`hold ${10_000 + 14_492 * 10_000}`])
  t.strictSame(await drawn(text, much, { bridged: true }), [`hold ${10_000 + 14_492 * 10_000}`], 'by another wire')
  t.strictSame(await drawn({ ...text, image_output: '30' }, much), [`hold ${10_000 + 14_492 * 30_000}`], 'the dearer')
  t.strictSame(await drawn({ prompt: '1', image_output: '30' }, much), [`hold ${10_000 + 14_492 * 30_000}`])
  t.strictSame(await drawn(text, 70_000_000n), [`hold ${10_000 + 14_492 * 10_000}`, 'encoded for 6999'])
  const [, refused] = await drawn(text, 63_000_000n)
  const why = /^402 .*does not cover its images\. Add credits, ask for fewer images, or/
  t.match(refused, why, 'no limit is sent that would cut the picture')
})

t.test('each choice of a stream that is cut ends once, whenever it ends', async t => {
  const ends = (got: readonly Event[]) => got.filter(event => event.type === 'finish')
  const cut: Event = { type: 'finish', choice: 1, reason: 'length' }
  const long = text('x'.repeat(4000), 1)
  const rows: [says: string, batches: Event[][]][] = [
    ['before it is cut', [[text('a')], [finish], [long]]],
    ['in the batch that is cut', [[text('a')], [finish, long]]],
  ]
  for (const [says, batches] of rows) {
    const given = { purse: { left: 410_000n }, request: { n: 2 }, mapping: { maxOutput: 100_000 } }
    const { got, ex } = await bill(answers(...batches), given)
    t.equal(ex.answer.stoppedBy, 'credit', says)
    t.strictSame(ends(got), [finish, cut], says)
  }
})

t.test('a whole answer is sent the output limit that its payer can afford', async t => {
  const cut: Event = { type: 'finish', choice: 0, reason: 'length' }
  const whole = answers([text('a')], [usage, cut])
  const given = { stream: false, mapping: { maxOutput: 1000 } }
  const less = await bill(whole, { ...given, purse: { left: 110_000n } })
  t.match(less.log, ['hold 2010000', 'encoded for 50'])
  t.match(less.ex.outbound.limit, { tokens: 50, by: 'credit' })
  t.equal(less.ex.answer.stoppedBy, 'credit', 'the answer says what has ended it')
  const two = await bill(whole, { ...given, purse: { left: 110_000n, of: 'key' }, request: { n: 2 } })
  t.match(two.ex.outbound.limit, { tokens: 25, by: 'limit' }, 'for each choice')
  const little = await bill(whole, { ...given, purse: { left: 24_000n } })
  t.match(little.message, /affords max_tokens of 7 at most/)
  const own = await bill(whole, { ...given, purse: { left: 24_000n }, request: { max_tokens: 7 } })
  t.equal(own.code, undefined, 'a caller may ask for less than what is sent unasked')
  const none = await bill(whole, { ...given, purse: { left: 9_000n } })
  t.match(none.message, /does not cover its prompt/)
  const limited = await bill(whole, { ...given, purse: { left: 24_000n, of: 'key' } })
  t.match(limited.message, /usage limit\. There is room for max_tokens of 7 at most/)
})

t.test('no limit is sent that the images of a chat would not fit into', async t => {
  const whole = answers([text('a')], [usage, finish])
  const model = { ...target({}).mapping.model, output: ['text', 'image'] }
  const two = { n: 2, image_config: { n: 2 } }
  const rows: [says: string, request: object, tokens: number, sent: number | undefined, refused?: string][] = [
    ['an image and some text', {}, 2010, 2010],
    ['no image', {}, 2009, undefined, 'billing_error'],
    ['two in each of two choices', two, 8020, 4010],
    ['not both', two, 8018, undefined, 'billing_error'],
    ["a caller's own limit", { max_tokens: 20 }, 20, undefined],
  ]
  for (const [says, request, tokens, sent, refused] of rows) {
    const purse = { left: BigInt(tokens) * 2000n + 10_000n }
    const { ex, code } = await bill(whole, { stream: false, mapping: { maxOutput: 10_000, model }, purse, request })
    t.strictSame([ex.outbound.limit?.tokens, code], [sent, refused], says)
  }
})

/** Speech of `seconds` in pieces of one, for a text of 21 seconds at most that is paid with 1,000 nano-USD a token. */
async function speak(seconds: number, { mapping, left, sent, bytes, report }: Spoken) {
  const { log, filter } = make(undefined, { left })
  const plain = target({
    mapping: { price: flat({ prompt: '0', output_audio: '1' }), ...mapping },
    model: { output: ['audio'] },
  })
  const decoder = () => ({ done: true, frame: () => [], end: () => [] })
  const to = { ...plain, translator: { ...plain.translator, ...(bytes && { bytes: { types: [], decoder } }) } }
  const body = { model: 'acme-large', input: 'x'.repeat(220), characters: 220, stream: true }
  const ex = exchange({ endpoint: speech, request: body, target: to, principal })
  ex.outbound.output = sent
  ex.outbound.encode({ encode: () => void (ex.outbound.limit && log.push(`encoded for ${ex.outbound.limit.tokens}`)) })
  const second: Event = { type: 'bytes', bytes: Buffer.alloc(48_000), contentType: 'audio/wav' }
  const batches: Event[][] = Array.from({ length: seconds }, () => [second])
  if (report) batches.push([{ type: 'usage', usage: { prompt: 1, completion: report, output_audio: report } }])
  let heard = 0
  try {
    for await (const batch of (await filter.handle!(ex, answers(...batches))).events) {
      ex.observe(batch)
      heard += batch.filter(({ type }) => type === 'bytes').length
    }
  } catch (thrown) {
    log.push((thrown as GatewayError).message)
  }
  return { heard, stoppedBy: ex.answer.stoppedBy, log: log.filter(line => !line.startsWith('cost')) }
}
interface Spoken {
  mapping?: Partial<Mapping>
  left: bigint
  sent?: SentOutput
  bytes?: true
  report?: number
}

t.test('speech by tokens holds what is usual, grows while it is measured, and ends in order', async t => {
  const streaming: Partial<Mapping> = { supports: new Set(['streaming']) }
  const much = 10n ** 12n
  const rows: [says: string, seconds: number, given: Spoken, heard: number, log: (string | RegExp)[]][] = [
    [
      'short of its hold',
      10,
      { mapping: streaming, left: much },
      10,
      ['hold 440000', 'settle ok 200 210000 estimated'],
    ],
    [
      'slow, in events',
      30,
      { mapping: streaming, left: much },
      30,
      ['hold 440000', 'extend 100000', 'extend 100000', 'settle ok 200 630000 estimated'],
    ],
    [
      'slow, as bytes',
      30,
      { bytes: true, left: much, report: 630 },
      30,
      ['hold 440000', /^extend/, /^extend/, /^extend/, 'settle ok 200 630000'],
    ],
    [
      'without end',
      1000,
      { mapping: streaming, left: 500_000n },
      24,
      ['hold 440000', 'extend 60000', 'extend 0', 'settle ok 200 500000 estimated'],
    ],
    [
      'without end, of one who has much: it counts as the slowest speech of its text',
      1000,
      { bytes: true, left: much },
      1000,
      ['hold 440000', ...Array.from({ length: 29 }, () => /^extend/), 'settle ok 200 3260000 estimated'],
    ],
    [
      'the same as bytes',
      1000,
      { bytes: true, left: 500_000n },
      24,
      ['hold 440000', 'extend 60000', 'extend 0', /500000 estimated$/],
    ],
    [
      'less than is usual',
      10,
      { mapping: streaming, left: 430_000n },
      0,
      ['hold 440000', /not cover its speech\. .*shorter/],
    ],
    [
      'that cannot be ended',
      30,
      { mapping: { cancellable: false }, bytes: true, left: much },
      30,
      ['hold 3260000', /./],
    ],
    [
      'with a limit',
      3,
      { sent: { limit: 2000, least: 440 }, left: much, report: 70 },
      3,
      ['hold 2000000', 'settle ok 200 70000'],
    ],
    [
      'with a lower one',
      3,
      { sent: { limit: 2000, least: 440 }, left: 500_000n, report: 70 },
      3,
      ['hold 2000000', 'encoded for 500', 'settle ok 200 70000'],
    ],
  ]
  for (const [says, seconds, given, heard, log] of rows) {
    const spoken = await speak(seconds, given)
    t.match(spoken.log, log, says)
    t.equal(spoken.log.length, log.length, says)
    t.equal(spoken.heard, heard, says)
    t.equal(spoken.stoppedBy, heard < seconds && heard > 0 ? 'credit' : undefined, says)
  }
})

t.test('a request without a principal or without input leaves no row', async t => {
  for (const facts of [{ request }, { principal }]) {
    const { log, filter } = make()
    await filter.finish!(exchange(facts), true)
    t.strictSame(log, [])
  }
})

t.test('a row holds facts only, and the source only when it is harmless', async t => {
  const row = (headers: Record<string, string>, more: (ex: Exchange) => void = () => undefined) => {
    const ex = exchange({ request: { ...request, stream: true }, target: target(), principal, headers })
    more(ex)
    return rowOf(ex, 'ok', 5n, ex.at + 70)
  }
  t.match(
    row({ 'x-request-id': 'mine' }, ex => ex.observe([text('a'), usage])),
    {
      requestId: 'mine',
      orgId: 'org-1',
      projectId: 'project-1',
      keyId: 'key-1',
      endpoint: 'chat',
      requestedModel: 'acme-large',
      model: 'acme-large',
      provider: 'acme',
      status: 200,
      streamed: true,
      cached: false,
      attempts: 0,
      durationMs: 70,
      usage: { prompt: 10, completion: 5 },
      cost: 5n,
    },
  )
  const streamed = row({}, ex => ex.observe([text('a'), usage]))
  t.type(streamed.ttftMs, 'number', 'the time to the first token of a stream')
  const whole = exchange({ request, target: target(), principal })
  whole.observe([text('a'), usage])
  t.equal(rowOf(whole, 'ok', 5n, whole.at + 70).ttftMs, null, 'a whole answer has no first token')
  const replayed = row({}, ex => {
    ex.answer.cached = { provider: 'p', model: 'm', externalId: 'e', logId: 'l', at: 0 }
  })
  t.match(replayed, { cached: true, provider: 'p', model: 'm', ttftMs: null })
  const sources: [given: string, kept: string | null][] = [
    ['https://www.acme.example/app', 'acme.example/app'],
    ['my-app', 'my-app'],
    ['x'.repeat(129), null],
    ['a\nb', null],
    ['\u001b[31m', null],
    ['{}', null],
    ['', null],
  ]
  for (const [given, kept] of sources) t.equal(row({ 'x-source': given }).source, kept, given)
})

t.test('a stream whose events are neither read nor ended is looked at until its hold has expired', async t => {
  const looks: (() => void)[] = []
  const ended: unknown[] = []
  t.intercept(globalThis, 'setInterval', {
    value: (look: (of: unknown) => void, _ms: number, of: unknown) => {
      looks.push(() => look(of))
      return { unref: () => 'timer' }
    },
  })
  t.intercept(globalThis, 'clearInterval', { value: (timer: unknown) => void ended.push(timer) })
  const { filter, clock } = make()
  const supports: Mapping['supports'] = new Set(['streaming'])
  const to = target({ mapping: { price, supports, maxOutput: 100 } })
  const ex = exchange({ request: { ...request, stream: true }, target: to, principal, signal: new Cancellation() })
  await filter.handle!(ex, async () => ({ status: 200, headers: [], events: eventsOf([text('Hi')]) }))
  t.equal(looks.length, 1)
  looks[0]!()
  t.strictSame(ended, [])
  clock.now += 24 * 3_600_000
  looks[0]!()
  t.strictSame(ended, ['timer'])
})
