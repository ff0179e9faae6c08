/** Which candidate comes first, and why: strategies, stickiness, exploration, affinity and regions. */
import t from 'tap'
import type { Catalog } from '../../src/core/catalog.ts'
import { chat as operation } from '../../src/operations/chat/index.ts'
import { plan } from '../../src/routing/plan.ts'
import type { RoutingQuery } from '../../src/routing/query.ts'
import { sessionName } from '../../src/routing/session-affinity.ts'
import { type Selection, TargetSelector } from '../../src/routing/target-selector.ts'
import { principal } from '../core/kit.ts'
import { catalogOf, credential, Memory, type Offer, priced, provider, queryOf, settingsOf } from './kit.ts'

const offers = (...all: Offer[]): Catalog => catalogOf({ m: { offers: all } })
const keys = ({ ranked }: Selection) => ranked.map(({ candidate }) => candidate.key)
const policy = { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }
const session = (id: string) => ({ session: id })

/** A chooser with a memory of its own, and what it makes of a request. */
function chooserOf(options: object = {}) {
  const memory = new Memory()
  const settings = settingsOf(options)
  const chooser = new TargetSelector(settings, memory)
  return { memory, chooser, choose: (query: RoutingQuery) => chooser.choose(query, plan(query, settings)) }
}
/** What is told apart: who comes first, and why. */
const told = (choice: Selection) => [keys(choice)[0], choice.reason]

t.test('an only candidate needs no score', async t => {
  const { choose } = chooserOf()
  const choice = choose(queryOf(offers([provider('a')])))
  t.match(choice, { reason: 'single-provider-available', failover: true })
  t.strictSame(keys(choice), ['a/m'])
})

t.test('a strategy of the request decides what counts', async t => {
  const catalog = offers(
    [provider('cheap'), priced('1')],
    [provider('quick'), priced('2')],
    [provider('near'), priced('3')],
  )
  const { memory, choose } = chooserOf({ preference: { enabled: false } })
  memory.attempts('cheap/m', 20, 0, { firstTokenMs: 900, tokensPerSecond: 20 })
  memory.attempts('quick/m', 20, 0, { firstTokenMs: 800, tokensPerSecond: 200 })
  memory.attempts('near/m', 20, 0, { firstTokenMs: 100, tokensPerSecond: 60 })
  const rows: [request: object, order: string][] = [
    [{ routing: 'price' }, 'cheap quick near'],
    [{ routing: 'throughput' }, 'quick near cheap'],
    [{ routing: 'latency', stream: true }, 'near quick cheap'],
    // Uptime alone: all are equal, and stay in the order of the catalogue.
    [{ routing: 'latency' }, 'cheap quick near'],
    // 0.3 × 3 against 0.6 × 1, and against 0.6 × 2 + 0.3 × 2.33.
    [{ routing: 'auto' }, 'quick cheap near'],
    [{}, 'quick cheap near'],
  ]
  for (const [request, order] of rows) {
    const choice = choose(queryOf(catalog, request))
    t.strictSame(
      keys(choice),
      order.split(' ').map(id => `${id}/m`),
      JSON.stringify(request),
    )
    t.equal(choice.reason, 'weighted-score')
  }
})

t.test('uptime counts from twenty attempts on, and a lack of it is punished whatever the strategy', async t => {
  const catalog = offers([provider('cheap'), priced('1')], [provider('dear'), priced('2')])
  const { memory, choose } = chooserOf({ preference: { enabled: false }, exploration: 0 })
  memory.attempts('cheap/m', 0, 19)
  t.equal(keys(choose(queryOf(catalog)))[0], 'cheap/m')
  memory.attempts('cheap/m', 0, 1)
  t.equal(keys(choose(queryOf(catalog)))[0], 'dear/m')
  t.equal(keys(choose(queryOf(catalog, { routing: 'price' })))[0], 'dear/m')
})

t.test(
  'one request in a hundred goes to a random candidate once the best is measured, and changes nothing',
  async t => {
    const catalog = offers([provider('a')], [provider('b')], [provider('c')])
    const { memory, choose } = chooserOf()
    memory.chances.push(0.001, 0.5)
    t.strictSame(told(choose(queryOf(catalog))), ['a/m', 'weighted-score'], 'nobody has been measured')
    memory.chances.length = 0
    memory.attempts('a/m', 20)
    memory.chances.push(0.0099, 0.5)
    const explored = choose(queryOf(catalog))
    t.strictSame(told(explored), ['b/m', 'random-exploration'])
    t.strictSame(keys(explored), ['b/m', 'a/m', 'c/m'], 'the others follow')
    memory.chances.push(0.01)
    t.strictSame(told(choose(queryOf(catalog))), ['a/m', 'stable-preferred'])
    memory.chances.push(0.001, 0.99)
    t.strictSame(
      told(choose(queryOf(catalog, {}, session('s')))),
      ['a/m', 'stable-preferred'],
      'sessions explore nothing',
    )
    memory.chances.length = 0
    memory.circuits.trip('b/m', policy, principal.orgId)
    memory.chances.push(0.001, 0.5)
    t.strictSame(told(choose(queryOf(catalog))), ['c/m', 'random-exploration'], 'who is left alone is not explored')
  },
)

t.test('a model keeps its provider for an hour, unless it is down or clearly no longer the best', async t => {
  const catalog = offers([provider('a'), priced('1')], [provider('b'), priced('1.05')])
  const { memory, choose } = chooserOf({ exploration: 0 })
  const ask = () => told(choose(queryOf(catalog)))
  t.strictSame(
    [ask(), ask()],
    [
      ['a/m', 'weighted-score'],
      ['a/m', 'stable-preferred'],
    ],
  )
  // 0.3 / 1.4 × 0.5 = 0.107 better, less the price: within the margin.
  memory.measurements.add('a/m', { tokensPerSecond: 100 }, principal.orgId)
  memory.measurements.add('b/m', { tokensPerSecond: 150 }, principal.orgId)
  t.strictSame(ask(), ['a/m', 'stable-preferred'])
  memory.time += 3_600_001
  t.strictSame(ask(), ['a/m', 'weighted-score'], 'an hour later everything is forgotten')
  memory.measurements.add('a/m', { tokensPerSecond: 100 }, principal.orgId)
  memory.measurements.add('b/m', { tokensPerSecond: 250 }, principal.orgId)
  t.strictSame(
    [ask(), ask()],
    [
      ['b/m', 'weighted-score'],
      ['b/m', 'stable-preferred'],
    ],
  )
  memory.circuits.trip('b/m', policy, principal.orgId)
  t.equal(ask()[1], 'weighted-score', 'whose circuit is open is no longer preferred')
  memory.time += 30_000
  t.strictSame(ask()[0], 'b/m', 'nobody was found meanwhile that is nearly as good')
})

t.test('a preferred provider is dropped below 85 percent', async t => {
  const catalog = offers([provider('a', { priority: 3 })], [provider('b')])
  const { memory, choose } = chooserOf({ exploration: 0 })
  const ask = () => choose(queryOf(catalog))
  memory.attempts('a/m', 86, 14)
  t.equal(ask().reason, 'weighted-score')
  t.equal(ask().reason, 'stable-preferred')
  memory.attempts('a/m', 0, 3)
  t.equal(ask().reason, 'weighted-score', 'it may still be the best, for its priority')
})

t.test('each strategy has preferences of its own; callers with fewer providers decide only for themselves', async t => {
  const [a, b] = [provider('a'), provider('b')]
  const both = offers([a, priced('1')], [b, priced('1.01')])
  const one = offers([b, priced('1')], [provider('c'), priced('2')])
  const { memory, choose } = chooserOf({ exploration: 0 })
  const ask = (catalog: Catalog, request = {}) => told(choose(queryOf(catalog, request)))
  t.strictSame(ask(both), ['a/m', 'weighted-score'])
  t.strictSame(ask(both, { routing: 'price' }), ['a/m', 'weighted-score'])
  t.strictSame(ask(both, { stream: true }), ['a/m', 'weighted-score'])
  t.strictSame(ask(one), ['b/m', 'weighted-score'])
  t.strictSame(ask(one), ['b/m', 'weighted-score'])
  t.strictSame(ask(both), ['a/m', 'stable-preferred'])
  t.equal(memory.affinity.get(`model m auto ${principal.orgId}`), 'a/m')
})

t.test(
  "an organization's own offer is preferred by that organization, and does not change the preference of others",
  async t => {
    const shared: Offer[] = [
      [provider('a'), priced('2')],
      [provider('b'), priced('2.1')],
    ]
    const { choose } = chooserOf({ exploration: 0 })
    const ask = (orgId: string, catalog: Catalog) =>
      told(choose(queryOf(catalog, {}, { principal: { ...principal, orgId } })))
    const own = (owner: string) =>
      offers([provider('own', { owner, auth: { scheme: 'none' } }), priced('1')], ...shared)
    for (const owner of ['org-1', 'org-2']) {
      t.equal(ask(owner, own(owner))[1], 'weighted-score')
      t.equal(ask(owner, own(owner))[1], 'stable-preferred')
    }
    t.strictSame(ask('org-1', own('org-1')), ['org-1:own/m', 'stable-preferred'])
    const all = offers(...shared)
    t.strictSame(
      [ask('org-3', all), ask('org-3', all)],
      [
        ['a/m', 'weighted-score'],
        ['a/m', 'stable-preferred'],
      ],
    )
  },
)

t.test(
  'AT-10 a session stays with who answered it, by x-session-id, prompt_cache_key and user in this order',
  async t => {
    const catalog = offers([provider('a'), priced('1')], [provider('b'), priced('1.1')])
    const { memory, chooser, choose } = chooserOf({ exploration: 0 })
    const rows: [headers: Record<string, string>, request: object][] = [
      [{ 'x-session-id': 'one' }, { prompt_cache_key: 'other', user: 'other' }],
      [{}, { prompt_cache_key: 'two', user: 'other' }],
      [{ 'x-session-id': '' }, { user: 'three' }],
    ]
    for (const [headers, request] of rows) {
      const says = JSON.stringify([headers, request])
      const query = queryOf(catalog, request)
      const named = { ...query, session: sessionName(headers, operation, query.request) }
      const first = choose(named)
      t.not(first.reason, 'session-sticky', says)
      chooser.keep(first, first.ranked[1]!.candidate)
      t.strictSame(told(choose(named)), ['b/m', 'session-sticky'], says)
    }
    t.not(choose(queryOf(catalog, { user: 'four' })).reason, 'session-sticky')
    t.not(choose(queryOf(catalog)).reason, 'session-sticky')
    const other = { ...principal, projectId: 'project-2' }
    t.not(
      choose(queryOf(catalog, {}, { ...session('one'), principal: other })).reason,
      'session-sticky',
      'of one project',
    )
    const long = 'x'.repeat(100_000)
    const choice = choose(queryOf(catalog, { user: long }))
    t.ok(choice.session!.key.length < 200, 'names of any length take little room')
    t.not(choice.session!.key, choose(queryOf(catalog, { user: `${long}y` })).session!.key)

    memory.time += 3_599_999
    const again = choose(queryOf(catalog, {}, session('one')))
    t.equal(again.reason, 'session-sticky')
    chooser.keep(again, again.ranked[1]!.candidate)
    memory.time += 3_599_999
    t.strictSame(
      told(choose(queryOf(catalog, {}, session('one')))),
      ['b/m', 'session-sticky'],
      'every answer prolongs it',
    )
    memory.time += 2
    t.not(choose(queryOf(catalog, {}, session('one'))).reason, 'session-sticky')
  },
)

t.test('a session leaves a provider that is down, and fails over unless that is turned off', async t => {
  const catalog = offers([provider('a'), priced('1')], [provider('b'), priced('1.1')])
  const { memory, chooser, choose } = chooserOf({ exploration: 0 })
  const ask = () => choose(queryOf(catalog, {}, session('s')))
  chooser.keep(ask(), ask().ranked[1]!.candidate)
  t.match(ask(), { reason: 'session-sticky', failover: true })
  memory.attempts('b/m', 84, 16)
  t.strictSame(told(ask()), ['a/m', 'stable-preferred'])
  memory.time += 3_600_000
  chooser.keep(ask(), ask().ranked[1]!.candidate)
  t.equal(ask().reason, 'session-sticky')
  memory.circuits.trip('b/m', policy, principal.orgId)
  t.not(ask().reason, 'session-sticky')

  const strict = chooserOf({ session: { failover: false } })
  t.match(strict.choose(queryOf(catalog, {}, session('s'))), { failover: false })
  const off = chooserOf({ session: { enabled: false } })
  t.equal(off.choose(queryOf(catalog, {}, session('s'))).session, undefined)
})

t.test(
  'UF-15 a named provider is kept while its uptime is 90 percent, and then left for one that does better',
  async t => {
    const catalog = offers([provider('a'), priced('1')], [provider('b'), priced('2')], [provider('c'), priced('3')])
    const ask = (memory: Memory, facts = {}, options = {}) => {
      const [settings, query] = [settingsOf(options), queryOf(catalog, { model: 'a/m' }, facts)]
      return new TargetSelector(settings, memory).choose(query, plan(query, settings))
    }
    const { memory } = chooserOf()
    t.strictSame([keys(ask(memory)), ask(memory).reason], [['a/m'], 'direct-provider-specified'])
    memory.attempts('a/m', 0, 4)
    t.strictSame(keys(ask(memory)), ['a/m'], 'four attempts say nothing')
    memory.attempts('a/m', 4, 0)
    t.equal(ask(memory).reason, 'low-uptime-fallback', 'from five on any number does')
    memory.time += 3_600_000
    memory.attempts('a/m', 9, 1)
    t.strictSame(keys(ask(memory)), ['a/m'], 'nine of ten are 90 percent')
    memory.attempts('a/m', 86, 4)
    t.strictSame(keys(ask(memory)), ['a/m'])
    memory.attempts('a/m', 0, 6)
    t.strictSame([keys(ask(memory)), ask(memory).reason], [['b/m', 'c/m', 'a/m'], 'low-uptime-fallback'])
    t.strictSame(keys(ask(memory, { failover: false })), ['a/m'])
    t.strictSame(keys(ask(memory, {}, { thresholds: { low_uptime: 80 } })), ['a/m'])
    memory.chances.push(0.001)
    t.strictSame([keys(ask(memory)), memory.chances], [['a/m', 'b/m', 'c/m'], []], 'now and then it is looked after')
    memory.attempts('b/m', 10, 90)
    t.strictSame(keys(ask(memory)), ['c/m', 'a/m'], 'nobody worse is asked instead')
    memory.attempts('c/m', 10, 90)
    t.strictSame(keys(ask(memory)), ['a/m'])
    memory.time += 3_600_000
    t.strictSame(keys(ask(memory)), ['a/m'], 'what is an hour old does not count')
  },
)

t.test('UF-15 a named provider is left while its circuit is open, or those of all its credentials', async t => {
  const a = provider('a', { credentials: [credential('1'), credential('2')] })
  const catalog = offers([a, priced('1')], [provider('b'), priced('2')], [provider('c'), priced('3')])
  const { memory, choose } = chooserOf()
  const ask = (facts = {}) => choose(queryOf(catalog, { model: 'a/m' }, facts))
  memory.circuits.trip('a/m#1', policy, principal.orgId)
  t.strictSame(told(ask()), ['a/m', 'direct-provider-specified'], 'another credential may do')
  memory.circuits.trip('a/m#2', policy, principal.orgId)
  t.strictSame([keys(ask()), ask().reason], [['b/m', 'c/m', 'a/m'], 'low-uptime-fallback'])
  memory.time += 30_000
  t.strictSame(told(ask()), ['a/m', 'direct-provider-specified'], 'half-open: this request is the probe')
  memory.circuits.trip('a/m', policy, principal.orgId)
  t.strictSame([keys(ask()), ask().reason], [['b/m', 'c/m', 'a/m'], 'low-uptime-fallback'])
  t.strictSame(keys(ask({ failover: false })), ['a/m'])
  memory.chances.push(0.001)
  t.strictSame([keys(ask())[0], memory.chances], ['b/m', [0.001]], 'nothing is left to chance')
  memory.circuits.trip('b/m', policy, principal.orgId)
  t.strictSame(keys(ask()), ['c/m', 'a/m'])
  memory.circuits.trip('c/m', policy, principal.orgId)
  t.strictSame(told(ask()), ['a/m', 'direct-provider-specified'], 'no other one does better')
})

t.test('x-no-fallback reaches the retry loop', async t => {
  const catalog = offers([provider('a')], [provider('b')])
  const { choose } = chooserOf()
  t.equal(choose(queryOf(catalog, {}, { failover: false })).failover, false)
  t.equal(choose(queryOf(catalog, {}, { failover: true })).failover, true)
})

t.test('each region of an address is a candidate of its own, with all credentials', async t => {
  const cloud = provider('cloud', {
    baseUrl: 'https://{region}.cloud.example/v1/{region}',
    credentials: [credential('1'), credential('2')],
  })
  const catalog = offers([cloud, { regions: ['eu', 'us'] }], [provider('b'), priced('9')])
  const { memory, chooser, choose } = chooserOf({ exploration: 0 })
  const choice = choose(queryOf(catalog))
  t.strictSame(keys(choice), ['cloud/m@eu', 'cloud/m@us', 'b/m'])
  t.strictSame(
    choice.ranked[0]!.targets.map(({ region, baseUrl, credential: of }) => [region, baseUrl, of!.id]),
    [
      ['eu', 'https://eu.cloud.example/v1/eu', '1'],
      ['eu', 'https://eu.cloud.example/v1/eu', '2'],
    ],
  )
  memory.attempts('cloud/m@eu', 10, 90)
  t.strictSame(keys(choose(queryOf(catalog)))[0], 'cloud/m@us', 'they are measured apart')
  chooser.keep(choose(queryOf(catalog, {}, session('s'))), choice.ranked[1]!.candidate)
  t.strictSame(told(choose(queryOf(catalog, {}, session('s')))), ['cloud/m@us', 'session-sticky'])
  t.strictSame(keys(choose(queryOf(catalog, { model: 'cloud/m' }))), ['cloud/m@us', 'cloud/m@eu'])
})

t.test('auto keeps the order of its models, and ranks the providers of each', async t => {
  const [a, b] = [provider('a'), provider('b')]
  const catalog = catalogOf({
    first: {
      offers: [
        [a, priced('5')],
        [b, priced('4')],
      ],
    },
    second: {
      offers: [
        [a, priced('1')],
        [b, priced('2')],
      ],
    },
  })
  const { choose } = chooserOf({ auto: ['first', 'second'] })
  t.strictSame(keys(choose(queryOf(catalog, { model: 'auto' }))), ['b/first', 'a/first', 'a/second', 'b/second'])
})
