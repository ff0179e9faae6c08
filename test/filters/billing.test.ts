/** Money around an attempt: what is reserved, what is charged, and what happens when the ledger fails. */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Mapping } from '../../src/core/catalog.ts'
import { errors, type GatewayError } from '../../src/core/error.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Reply } from '../../src/core/filter.ts'
import { parseMoney } from '../../src/core/money.ts'
import type { RequestRow, Services } from '../../src/core/ports.ts'
import { billing } from '../../src/filters/billing.ts'
import { rowOf } from '../../src/filters/row.ts'
import { sourceOf } from '../../src/filters/source.ts'
import { eventsOf, exchange, principal, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'

const request = { model: 'acme-large', messages: [{ role: 'user', content: 'x'.repeat(40) }] }
const price = flat({ prompt: '1', completion: '2' })
const usage: Event = { type: 'usage', usage: { prompt: 10, completion: 5 } }
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }
const broken: Event = { type: 'error', error: errors.truncated() }

type Act = 'hold' | 'settle' | 'void' | 'record'
/** A filter on a ledger that notes what it is asked, and fails or refuses where it is told to. */
function make(fails?: Act | 'insufficient', default_output = 100) {
  const log: string[] = []
  const act = async (name: Act, note = '') => {
    log.push(`${name}${note}`)
    if (name === fails) throw errors.billingUnavailable(new Error('disk full'))
  }
  const shown = (row: RequestRow) => ` ${row.outcome} ${row.status} ${row.cost}${row.estimated ? ' estimated' : ''}`
  const services = {
    now: () => 5000,
    ledger: {
      hold: async ({ amount }: { amount: bigint }) => {
        await act('hold', ` ${amount}`)
        return fails === 'insufficient' ? fails : { id: 'h', orgId: 'org-1', amount }
      },
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
  return { log, filter: billing.create({ default_output, storage: '0.01' }, services as unknown as Services) }
}

interface Given {
  fails?: Act | 'insufficient'
  stream?: boolean
  mapping?: Partial<Mapping>
  /** The client goes away after so many batches. */
  gone?: number
}
/** Runs an exchange through billing as the pump does. Returns what it asked of the ledger, and how it ended. */
async function bill(reply: () => Promise<Reply>, { fails, stream = true, mapping, gone }: Given = {}) {
  const { log, filter } = make(fails)
  const signal = new Cancellation()
  const to = target({ mapping: { price, ...mapping } })
  const ex = exchange({ request: { ...request, stream }, target: to, principal, signal })
  try {
    let batches = 0
    for await (const batch of (await filter.handle!(ex, reply)).events) {
      ex.observe(batch)
      if (++batches === gone) signal.abort(errors.aborted())
      if (signal.reason) throw signal.reason
      if (ex.failure) throw ex.failure
    }
    ex.outcome = 'ok'
  } catch (error) {
    ex.failure = error as GatewayError
    ex.outcome = ex.failure.status === 499 ? 'aborted' : 'error'
  }
  await filter.finish!(ex, true)
  return { log, code: ex.failure?.code }
}
const answers =
  (...batches: Event[][]) =>
  async (): Promise<Reply> => ({ status: 200, headers: [], events: eventsOf(...batches) })

t.test('every app is told by its name, though the name means something to JavaScript', async t => {
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
      [HOLD, 'void', 'warn a hold could not be given back; it will expire', 'record error 502 0'],
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
      target: target({ mapping: { price, ...mapping } }),
      principal,
    })
    await filter.handle!(ex, answers([]))
    return log[0]
  }
  const usd = (amount: string) => `hold ${parseMoney(amount)}`
  const rows: [says: string, fields: object, mapping: Partial<Mapping>, amount: string][] = [
    ['the default', {}, {}, '0.00021'],
    ['max_tokens', { max_tokens: 1000 }, { maxOutput: 5000 }, '0.00201'],
    ['no more than the model writes', { max_tokens: 1e12 }, { maxOutput: 50 }, '0.00011'],
    ['every choice', { max_tokens: 10, n: 3 }, {}, '0.00007'],
    ['a model that writes less than the default', {}, { maxOutput: 50 }, '0.00011'],
  ]
  for (const [says, fields, mapping, amount] of rows) t.equal(await reserved(fields, mapping), usd(amount), says)
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
  const replayed = row({}, ex => {
    ex.cached = { provider: 'p', model: 'm', externalId: 'e', logId: 'l', at: 0 }
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
