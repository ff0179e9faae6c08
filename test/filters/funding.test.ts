/** Who pays for an attempt: discounts, coding plans, keys of one's own, limits, and what is reserved. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Event } from '../../src/core/event.ts'
import { formatMoney, parseMoney } from '../../src/core/money.ts'
import type { Plan } from '../../src/core/plan.ts'
import type { Exhausted, Hold, HoldRequest, Principal, RequestRow, Services } from '../../src/core/ports.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { Mapping } from '../../src/core/translator.ts'
import { transcriptions } from '../../src/endpoints/inference.ts'
import { billing } from '../../src/filters/billing/index.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { eventsOf, exchange, principal, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'
import { catalogOf } from '../routing/kit.ts'

const messages = [{ role: 'user', content: 'x'.repeat(4000) }]
const usage: Event = { type: 'usage', usage: { prompt: 1000, completion: 500 } }
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }
const lite: Plan = {
  monthly: parseMoney('87'),
  weeklyPremium: parseMoney('8.7'),
  premiumFrom: { prompt: 5_000_000n, completion: 15_000_000n },
  endpoints: new Set(['chat']),
  serviceTiers: new Set(['auto', 'default', 'flex']),
  routing: new Set(['auto', 'price']),
}
const planned: Partial<Principal> = { plan: { plan: 'lite', since: 0, overflow: false } }
const own: Credential = { id: 'c', source: 'byok', secret: 's', fingerprint: 'f' }

interface Given {
  endpoint?: Endpoint
  request?: object
  principal?: Partial<Principal>
  mapping?: Partial<Mapping>
  output?: string[]
  credential?: Credential
  /** What the ledger says to the hold. */
  says?: Exhausted
  provider?: string
  /** What the client says, where a virtual model changes it. */
  written?: object
  /** The ledger cannot be written from then on. */
  fails?: 'hold' | 'settle'
  /** There is no room for rows that wait. */
  full?: boolean
  plans?: Plan
  events?: Event[]
  /** Whether content of unknown size is held for at its most. */
  unmeasured?: boolean
}
/** What one request asks of the ledger, and how it ends. */
async function bill(given: Given = {}) {
  const asked: { hold?: HoldRequest; row?: RequestRow; spooled?: RequestRow; unpriced?: true } = {}
  const funds = given.credential ? 'byok' : 'credits'
  const hold: Hold = { id: 'h', orgId: 'org-1', amount: 0n, funds, budgets: null }
  const down = errors.billingUnavailable(new Error('disk full'))
  const services = {
    now: () => 5000,
    ledger: {
      hold: async (request: HoldRequest) => {
        asked.hold = request
        if (given.fails === 'hold') throw down
        return given.says ?? hold
      },
      settle: async (_: Hold, row: RequestRow) => {
        if (given.fails) throw down
        asked.row = row
      },
      spool: async (row: RequestRow) => {
        asked.spooled = row
      },
      canSpool: !given.full,
      record: async () => undefined,
    },
    metrics: {
      tokens() {},
      cost() {},
      unpriced() {
        asked.unpriced = true
      },
    },
  }
  const filter = billing.create(
    { stream_hold: 1000, least_output: 256, hold_unmeasured: given.unmeasured ?? true, storage: '0.01' },
    services as unknown as Services,
  )
  const to = target({
    mapping: { price: flat({ prompt: '1', completion: '2' }), unpriced: 'refuse', maxOutput: 1000, ...given.mapping },
    model: { output: given.output ?? ['text'] },
  })
  const ex = exchange({
    ...(given.endpoint && { endpoint: given.endpoint }),
    request: { model: 'acme-large', messages, ...given.request },
    target: { ...to, credential: given.credential },
    principal: { ...principal, ...given.principal },
    snapshot: { catalog: catalogOf({}), plans: new Map([['lite', given.plans ?? lite]]) },
  })
  ex.requested.provider = given.provider ?? null
  if (given.written) ex.requested.written = given.written as ChatRequest
  try {
    const events = eventsOf([text('a')], [...(given.events ?? []), usage, finish])
    for await (const batch of (await filter.handle!(ex, async () => ({ status: 200, headers: [], events }))).events) {
      ex.observe(batch)
    }
    return { ex, ...asked, error: undefined }
  } catch (error) {
    return { ex, ...asked, error: error as GatewayError }
  }
}

t.test('the most specific discount is taken off what is held and charged, and reported', async t => {
  const discount = (millionths: number, provider: string | null = null, model: string | null = null) => ({
    provider,
    model,
    millionths,
  })
  const rows: [says: string, discounts: Principal['discounts'], cost: string, told: number][] = [
    ['none', [], '0.002', 0],
    ['of all', [discount(100_000)], '0.0018', 100_000],
    ['the first that fits', [discount(500_000, 'acme', 'acme-large'), discount(100_000)], '0.001', 500_000],
    ['of another provider', [discount(500_000, 'other'), discount(250_000, null, 'acme-large')], '0.0015', 250_000],
    ['of another model', [discount(500_000, 'acme', 'acme-small')], '0.002', 0],
    ['by another name of it', [discount(500_000, null, 'acme/acme-large')], '0.001', 500_000],
    ['everything', [discount(1_000_000)], '0', 1_000_000],
  ]
  for (const [says, discounts, cost, told] of rows) {
    const { hold, row } = await bill({ principal: { discounts } })
    t.equal(formatMoney(row!.cost!), cost, says)
    t.equal(row!.discount, told, says)
    t.equal(hold!.amount, (parseMoney('0.003') * BigInt(1_000_000 - told)) / 1_000_000n, says)
  }
  const free = await bill({ principal: { discounts: [discount(500_000)] }, credential: own })
  t.match([formatMoney(free.row!.cost!), free.row!.discount], ['0.002', 0], 'who pays the provider pays its price')
})

t.test('a file at an address is held for as usual, with what more it may need to spare', async t => {
  const file = { type: 'file', file: { file_data: 'https://a.example/a' } }
  const given = {
    request: { max_tokens: 100, messages: [{ role: 'user', content: [file] }] },
    mapping: { contextLength: 200_000 },
  }
  const usual = (await bill({ ...given, unmeasured: false })).hold!
  t.match(usual, { amount: parseMoney('0.0242'), spare: undefined })
  t.match((await bill(given)).hold, { amount: usual.amount, least: usual.least, spare: parseMoney('0.176') })
  const written = { ...given.mapping, price: flat({ prompt: '1', completion: '2', input_cache_write: '1.25' }) }
  t.match((await bill({ ...given, mapping: written })).hold, {
    amount: parseMoney('0.0302'),
    spare: parseMoney('0.22'),
  })
})

t.test('a plan pays, and premium models count against its week', async t => {
  t.equal((await bill()).hold!.allowance, undefined, 'without a plan')
  const { monthly, weeklyPremium } = lite
  const rows: [says: string, prices: [string, string], premium: bigint | undefined][] = [
    ['a cheap one', ['4.99', '14.99'], undefined],
    ['dear to read', ['5', '1'], weeklyPremium],
    ['dear to write', ['1', '15'], weeklyPremium],
  ]
  for (const [says, [prompt, completion], premium] of rows) {
    const { hold } = await bill({ principal: planned, mapping: { price: flat({ prompt, completion }) } })
    t.strictSame(hold!.allowance, { monthly, premium }, says)
  }
  const undeclared = { ...planned, plan: { ...planned.plan!, plan: 'max' as const } }
  t.strictSame((await bill({ principal: undeclared })).hold!.allowance, { monthly: 0n, premium: undefined })
})

t.test('a plan has its restrictions (interface 8.6)', async t => {
  const ofOperator = { service_tier: 'priority', routing: 'throughput', provider: { order: ['acme'] } }
  const rows: [says: string, given: Given, status: number | undefined, message: RegExp][] = [
    ['a plain request', {}, undefined, /^$/],
    ['the flex tier', { request: { service_tier: 'flex' } }, undefined, /^$/],
    ['routing by price', { request: { routing: 'price' } }, undefined, /^$/],
    [
      'the priority tier',
      { request: { service_tier: 'priority' } },
      403,
      /service_tier "priority"; use auto, default, flex/,
    ],
    ['other routing', { request: { routing: 'latency' } }, 400, /routing "latency"; use auto, price/],
    ['a provider', { provider: 'acme' }, 403, /name the model without a provider/],
    ['what a virtual model sets', { request: ofOperator, written: { model: 'acme-large', messages } }, undefined, /^$/],
    ['another endpoint', { plans: { ...lite, endpoints: new Set(['messages']) } }, 403, /cannot use this endpoint/],
  ]
  for (const [says, given, status, message] of rows) {
    const { error, hold } = await bill({ principal: planned, ...given })
    t.equal(error?.status, status, says)
    t.match(error?.message ?? '', message, says)
    if (status) t.equal(hold, undefined, `${says} is refused before anything is reserved`)
    t.equal((await bill(given)).error, undefined, `${says}, without a plan`)
  }
})

t.test('a refusal about money is 402, and says when there is money again', async t => {
  const at = Date.UTC(2026, 1, 1)
  const waits =
    'The organization has insufficient credits for this request: the balance does not cover it while 4.93 USD are held ' +
    'for requests in flight. Add credits, repeat it when they have ended, or use a cheaper model.'
  const rows: [says: Omit<Exhausted, 'room' | 'held'>, message: string][] = [
    [
      { exhausted: 'credits', period: 'total', resetsAt: undefined },
      'The organization has insufficient credits for this request: the balance does not cover its prompt. ' +
        'Add credits, shorten the prompt, or use a cheaper model.',
    ],
    [{ exhausted: 'key', period: 'total', resetsAt: undefined }, 'API key reached its usage limit.'],
    [
      { exhausted: 'key', period: 'day', resetsAt: at },
      'API key reached its current period usage limit. It resets at 2026-02-01T00:00:00.000Z.',
    ],
    [{ exhausted: 'member', period: 'total', resetsAt: undefined }, 'Member has reached their total spend budget.'],
    [
      { exhausted: 'member', period: 'month', resetsAt: at },
      'Member has reached their period spend budget. It resets at 2026-02-01T00:00:00.000Z.',
    ],
    [
      { exhausted: 'plan', period: 'month', resetsAt: at },
      'Coding plan credit limit reached. Upgrade your plan or wait for renewal on 2026-02-01.',
    ],
    [
      { exhausted: 'premium', period: 'week', resetsAt: at },
      'Coding plan weekly premium limit reached. Use a model that is not premium. It resets at 2026-02-01T00:00:00.000Z.',
    ],
  ]
  for (const [says, message] of rows) {
    const { error, row } = await bill({ says: { ...says, room: 0n, held: 0n } })
    t.match(error, { status: 402, type: 'invalid_request_error', code: 'billing_error', message, failover: false })
    t.equal(row, undefined)
    const held = await bill({ says: { ...says, room: 0n, held: parseMoney('4.93') }, request: { stream: false } })
    const more = ' 4.93 USD are held for requests in flight: repeat this one when they have ended.'
    const lacks = message.startsWith('The organization')
    t.equal(held.error?.message, lacks ? waits : message + more)
    t.equal((await bill({ says: { ...says, room: 0n, held: 1n } })).error?.message, message, 'where that would not do')
  }
})

t.test('a refusal names what is lower where that would do', async t => {
  const says: Exhausted = { exhausted: 'credits', period: 'total', resetsAt: undefined, room: 24_000n, held: 0n }
  const given: Given = { mapping: { price: flat({ prompt: '1', completion: '2', input_audio: '3' }) } }
  const recording = { model: 'acme-large', seconds: 60, file: { size: 1 }, format: 'json' }
  const rows: [says: string, given: Given, message: RegExp][] = [
    [
      'a chat',
      { says: { ...says, room: parseMoney('0.0011') } },
      /affords max_tokens of \d+ at most\. Add credits, lower max_tokens, or/,
    ],
    ['its prompt', { says }, /does not cover its prompt\. Add credits, shorten the prompt, or/],
    [
      'its prompt, also without requests in flight',
      { says: { ...says, held: 1n } },
      /does not cover its prompt\. Add credits, shorten the prompt, or use a cheaper model\.$/,
    ],
    [
      'a chat that may wait for those',
      { says: { ...says, room: parseMoney('0.0011'), held: parseMoney('1') } },
      /affords max_tokens of \d+ at most\. Add credits, lower max_tokens, or .* 1 USD are held for requests in flight: repeat/,
    ],
    [
      'audio that must',
      { ...given, says: { ...says, held: parseMoney('1') }, endpoint: transcriptions[0]!, request: recording },
      /does not cover it while 1 USD are held for requests in flight\. Add credits, repeat it when they have ended, or/,
    ],
    [
      'audio',
      { ...given, says, endpoint: transcriptions[0]!, request: recording },
      /does not cover it\. Add credits, make the request smaller, or/,
    ],
  ]
  for (const [what, row, message] of rows) t.match((await bill(row)).error?.message, message, what)
})

t.test('what has no price is refused on credits, and served with own provider keys', async t => {
  const search = { web_search: true }
  const priced = { price: flat({ prompt: '1', completion: '2', web_search: '0.01' }) }
  const rows: [says: string, given: Given, status: number | undefined][] = [
    ['a model', { mapping: { price: undefined } }, 402],
    ['a model that is allowed', { mapping: { price: undefined, unpriced: 'allow' } }, undefined],
    ['a model, to its payer', { mapping: { price: undefined }, credential: own }, undefined],
    ['a search', { request: search }, 402],
    ['a search as a tool', { request: { tools: [{ type: 'web_search' }] } }, 402],
    ['a search with a price', { request: search, mapping: priced }, undefined],
    ['a search, to its payer', { request: search, credential: own }, undefined],
  ]
  for (const [says, given, status] of rows) {
    const { error, hold, row, unpriced } = await bill(given)
    t.equal(error?.status, status, says)
    if (status) t.equal(hold, undefined, says)
    t.equal(unpriced === true, row?.cost === null, `${says}: only what was served without a price is counted so`)
  }
  const refused = (await bill({ request: search })).error
  t.match(refused?.message, /price of what is asked of acme\/acme-large is unknown/)
  t.equal(refused?.failover, true, 'another provider may have the price')
  t.equal((await bill({ mapping: { price: undefined }, credential: own })).hold?.byok, true)
})

t.test('what is reserved includes what is asked for besides tokens', async t => {
  const price = flat({ prompt: '1', completion: '2', web_search: '0.01', image: '0.001', image_output: '30' })
  const picture = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } }
  const reserved = async (given: Given) => formatMoney((await bill({ mapping: { price }, ...given })).hold!.amount)
  t.equal(await reserved({}), '0.003')
  t.equal(
    await reserved({ mapping: { price, maxOutput: 200_000 }, request: { max_tokens: 100_000 } }),
    '0.201',
    'as much as the caller asks for',
  )
  const small = { mapping: { price, maxOutput: undefined, contextLength: 8000 }, request: { max_tokens: 100_000 } }
  t.equal(await reserved(small), '0.017', 'and the model may write')
  t.equal(await reserved({ request: { web_search: true } }), '0.013')
  t.equal(await reserved({ request: { tools: [{ type: 'web_search', max_uses: 3 }] } }), '0.033009')
  t.equal(await reserved({ request: { tools: [{ type: 'web_search', max_uses: 1000 }] } }), '0.10301', 'within reason')
  t.equal(await reserved({ request: { messages: [{ role: 'user', content: [picture, picture] }] } }), '0.004')
  t.equal(await reserved({ output: ['text', 'image'] }), '0.0397', 'an answer that may be a picture')
  const tiers = { price: { ...price, tierFactors: { flex: 500_000n, priority: 2_000_000n } } }
  t.equal(await reserved({ mapping: tiers, request: { service_tier: 'priority' } }), '0.006')
  t.equal(await reserved({ mapping: tiers, request: { service_tier: 'flex' } }), '0.003', 'flex may not be had')
})

t.test('what was served is charged: its tier, its pictures, what the request held', async t => {
  const price = {
    ...flat({ prompt: '1', completion: '2', image: '0.001' }),
    tierFactors: { flex: 500_000n },
    perImage: { '2K': 40_000_000_000n, default: 100_000_000_000n },
  }
  const cost = async (given: Given) => formatMoney((await bill({ mapping: { price }, ...given })).row!.cost!)
  t.equal(await cost({}), '0.002')
  t.equal(await cost({ request: { service_tier: 'flex' } }), '0.001', 'as asked, unless the provider says otherwise')
  t.equal(await cost({ request: { service_tier: 'flex' }, events: [{ type: 'tier', tier: 'default' }] }), '0.002')
  const flex = await bill({ mapping: { price }, events: [{ type: 'tier', tier: 'flex' }] })
  t.match([formatMoney(flex.row!.cost!), flex.row!.tier], ['0.001', 'flex'])
  const drawn: Event[] = [{ type: 'image', choice: 0, url: 'data:,' }]
  t.equal(await cost({ events: drawn, request: { image_config: { image_size: '2K' } } }), '0.041')
  t.equal(await cost({ events: [...drawn, ...drawn] }), '0.201')
  const picture = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } }
  t.equal(await cost({ request: { messages: [{ role: 'user', content: [picture] }] } }), '0.003')
})

t.test('stored data is charged for beside the cost', async t => {
  t.equal((await bill()).row!.storage, 0n)
  const { row, ex } = await bill({ principal: { retains: true } })
  t.equal(formatMoney(row!.storage), '0.000015', '1500 tokens at a cent a million')
  t.equal(formatMoney(row!.cost!), '0.002')
  t.equal(ex.answer.storage, row!.storage)
})

t.test(
  'B.10 requests with own provider keys are served while the ledger cannot be written, within what can be recorded later',
  async t => {
    const budgets: Principal['budgets'] = [{ id: 'b', of: 'key', limit: 1n, period: 'total', zone: 'UTC' }]
    const rows: [says: string, given: Given, got: 'settled' | 'spooled' | 402 | 503][] = [
      ['by credits', { fails: 'hold' }, 503],
      ['by credits, at the end', { fails: 'settle' }, 503],
      ['by itself', { fails: 'hold', credential: own }, 'spooled'],
      ['by itself, at the end', { fails: 'settle', credential: own }, 'spooled'],
      [
        'by itself, within a limit that cannot be read',
        { fails: 'hold', credential: own, principal: { budgets } },
        503,
      ],
      ['by itself, but nothing more can be kept', { fails: 'hold', credential: own, full: true }, 503],
      ['by itself, but nothing more can be kept at the end', { fails: 'settle', credential: own, full: true }, 503],
      [
        'by itself, beyond a limit',
        { credential: own, says: { exhausted: 'key', period: 'total', resetsAt: undefined, room: 0n, held: 0n } },
        402,
      ],
      ['by itself, on a good day', { credential: own }, 'settled'],
    ]
    for (const [says, given, got] of rows) {
      const { error, row, spooled } = await bill(given)
      t.equal(error?.status ?? (row ? 'settled' : spooled ? 'spooled' : undefined), got, says)
      if (error?.status === 503) t.equal(error.code, 'billing_unavailable', says)
      // What its client did not get is free. The row ends the hold, which would take the organization's money for long.
      const kept = error ? { outcome: 'error', status: 503, cost: 0n } : { outcome: 'ok', cost: parseMoney('0.002') }
      if (spooled) t.match(spooled, kept, says)
      t.equal(spooled !== undefined, got === 'spooled' || says === 'by credits, at the end', says)
    }
  },
)
