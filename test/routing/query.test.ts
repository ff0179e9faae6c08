/** Planning is a function of its query, and an explanation and a request are planned alike. */
import t from 'tap'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Operation } from '../../src/core/operation.ts'
import type { RouteQuestion } from '../../src/core/ports.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import type { Mapping, Model, Target } from '../../src/core/translator.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { route } from '../../src/filters/route/index.ts'
import { ExchangeQuery } from '../../src/filters/routing-query.ts'
import { operations } from '../../src/operations/index.ts'
import { candidateTargetOf } from '../../src/routing/candidate.ts'
import { explainRoute } from '../../src/routing/explain.ts'
import { plan } from '../../src/routing/plan.ts'
import { TargetSelector } from '../../src/routing/target-selector.ts'
import { exchange, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'
import { asking, catalogOf, credential, Memory, priced, provider, queryOf, settingsOf } from './kit.ts'

const refuse = () => {
  throw new Error('the query was changed')
}

/** Freezes all that can be reached, maps and sets included. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  const inner = value instanceof Map || value instanceof Set ? [...value] : []
  if (inner.length > 0 || value instanceof Map) Object.assign(value, { set: refuse, delete: refuse, clear: refuse })
  if (value instanceof Set) Object.assign(value, { add: refuse, delete: refuse, clear: refuse })
  Object.freeze(value)
  for (const one of [...inner, ...Object.values(value)]) frozen(one)
  return value
}

/** Three offers of `m`, of which the cheapest takes short prompts only and another one does not stream; one of `n`. */
function catalog(): Catalog {
  const [a, b, c] = [provider('a'), provider('b', { credentials: [credential('1'), credential('2')] }), provider('c')]
  return catalogOf({
    m: {
      offers: [
        [a, { ...priced('1'), contextLength: 100 }],
        [b, { ...priced('2'), supports: new Set() }],
        [c, priced('3')],
      ],
    },
    n: { offers: [[c, priced('1')]] },
  })
}

t.test('planning a query twice gives the same and changes nothing of it', async t => {
  const settings = settingsOf({ auto: ['n', 'm'], exploration: 0 })
  const rows: [fields: object, targets: string][] = [
    [{}, 'a/m b/m b/m c/m'],
    [{ model: 'b/m' }, 'b/m b/m'],
    [{ model: 'auto' }, 'c/n a/m b/m b/m c/m'],
    [{ stream: true, routing: 'price', user: 'u' }, 'a/m c/m'],
    [{ messages: [{ role: 'user', content: 'x'.repeat(4000) }] }, 'b/m b/m c/m'],
  ]
  for (const [fields, targets] of rows) {
    const query = frozen(queryOf(catalog(), fields))
    const says = JSON.stringify(fields).slice(0, 80)
    const [one, two] = [plan(query, settings), plan(query, settings)]
    t.equal(one.targets.map(target => candidateTargetOf(target).candidate.key).join(' '), targets, says)
    t.strictSame({ ...two, targets: [] }, { ...one, targets: [] }, says)
    t.ok(
      one.targets.length === two.targets.length && one.targets.every((target, at) => target === two.targets[at]),
      `${says}: the same targets`,
    )
    const chosen = [one, two].map(found => new TargetSelector(settings, new Memory()).choose(query, found))
    t.strictSame(chosen[0], chosen[1], says)
  }
  const refused = frozen(queryOf(catalog(), { verbosity: 'low' }))
  const twice = [0, 1].map(() => thrown(() => plan(refused, settings)) as Error)
  t.match(twice[0], { status: 400, param: 'verbosity' })
  t.equal(twice[0]!.message, twice[1]!.message)
  t.throws(() => (refused.catalog.models as Map<string, Model>).delete('m'), /was changed/, 'the query is frozen')
})

t.test('a request that no target can serve keeps the model that it requested', async t => {
  const rows: [fields: object, model: string, provider: string | null][] = [
    [{ verbosity: 'low' }, 'm', null],
    [{ model: 'a/m', routing: 'price' }, 'm', 'a'],
    [{ model: 'auto' }, 'auto', null],
    [{ model: 'unknown' }, '', null],
  ]
  for (const [fields, model, by] of rows) {
    const ex = asking(catalog(), fields)
    await t.rejects(tried(ex, new Memory(), {}))
    t.strictSame([ex.requested.model, ex.requested.provider], [model, by], JSON.stringify(fields))
  }
})

/** The candidate that the `route` filter tries first. */
async function tried(ex: Exchange, memory: Memory, options: object): Promise<string> {
  let first = ''
  const next = async () => {
    first = candidateTargetOf(ex.target!).candidate.key
    return { status: 200, headers: [], events: [] as never }
  }
  const filter = route.create(settingsOf(options), memory as never)
  await filter.handle!(ex, next)
  return first
}

t.test('an explanation names the target that such a request is sent to, and leaves no trace', async t => {
  const options = { exploration: 0, auto: ['n'], preference: { enabled: false } }
  const policy = { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }
  const rows: [says: string, question: Partial<RouteQuestion>, choice: string, before?: (memory: Memory) => void][] = [
    ['the cheapest', {}, 'a/m'],
    ['a long prompt', { prompt: 200 }, 'b/m'],
    ['a stream', { stream: true }, 'a/m'],
    ['a long stream', { stream: true, prompt: 200 }, 'c/m'],
    ['a strategy', { routing: 'throughput' }, 'c/m', memory => memory.attempts('c/m', 20, 0, { tokensPerSecond: 200 })],
    ['the latency of streams', { stream: true }, 'a/m', memory => memory.attempts('c/m', 20, 0, { firstTokenMs: 900 })],
    ['a named provider', { model: 'b/m' }, 'b/m'],
    ['a named one that is down', { model: 'b/m' }, 'a/m', memory => memory.attempts('b/m', 0, 20)],
    ['an open circuit', {}, 'b/m', memory => memory.circuits.trip('a/m', policy, null)],
    ['auto', { model: 'auto' }, 'c/n'],
    ['a session', { session: 's' }, 'c/m', memory => memory.affinity.set('session  m s', 'c/m', 60_000, '')],
    ['another session', { session: 't' }, 'a/m', memory => memory.affinity.set('session  m s', 'c/m', 60_000, '')],
  ]
  for (const [says, question, choice, before] of rows) {
    const memory = new Memory()
    before?.(memory)
    const { model = 'm', prompt = 1, session, stream, routing } = question
    const chain = { links: [{ factory: { name: 'route' }, options: settingsOf(options) }] }
    const snapshot = { catalog: catalog(), routes: () => [{ endpoint: chat, chain }] } as unknown as Snapshot
    const explain = () => explainRoute(frozen(snapshot), memory, { model, prompt, session, stream, routing })
    const explained = explain()
    t.strictSame(explain(), explained, `${says}: asked again`)
    t.equal(explained.choice, choice, says)
    const ex = exchange({
      request: { model, stream, routing, messages: [{ role: 'user', content: 'x'.repeat(4 * prompt) }] },
      headers: session === undefined ? {} : { 'x-session-id': session },
      snapshot,
    })
    t.equal(await tried(ex, memory, options), choice, `${says}: as a request`)
  }
})

t.test('a route is explained for every operation, whatever its requests hold', async t => {
  const [offer] = catalog().models.get('m')!.mappings
  for (const operation of Object.values(operations)) {
    const wires = new Map([[operation.name, target().translator]])
    const model: Model = { ...offer!.model, id: 'v', operations: [operation.name], mappings: [] }
    const served = { wires, supports: new Set([...offer!.supports, 'realtime'] as const), contextLength: undefined }
    const mapping: Mapping = { ...offer!, model, provider: provider('a', { wires }), ...served }
    const models = new Map([['v', { ...model, mappings: [mapping] }]])
    const chain = { links: [{ factory: { name: 'route' }, options: settingsOf({}) }] }
    const routes = () => [{ endpoint: { ...chat, operation }, chain }]
    const snapshot = { catalog: { ...catalog(), models }, routes } as unknown as Snapshot
    const { choice } = explainRoute(snapshot, new Memory(), { model: 'v', prompt: 9000, stream: true, session: 's' })
    t.equal(choice, 'a/v', operation.name)
  }
})

t.test('an explanation shows the circuit of the polls of what creates jobs', t => {
  const video = openai.wires.find(({ wire }) => wire === 'openai.videos') as Target['translator']
  const one = provider('one', { wires: new Map([[operations.videos.name, video]]) })
  const film = catalogOf({ film: { offers: [[one]] } })
  const [mapping] = film.models.get('film')!.mappings
  Object.assign(mapping!, { wires: one.wires })
  const memory = new Memory()
  const show = (operation: Operation, shown: Catalog, model: string) => {
    const chain = { links: [{ factory: { name: 'route' }, options: settingsOf({}) }] }
    const snapshot = { catalog: shown, routes: () => [{ endpoint: { ...chat, operation }, chain }] }
    return explainRoute(snapshot as unknown as Snapshot, memory, { model }).candidates[0]!
  }
  t.match(show(operations.videos as Operation, film, 'film'), {
    circuit: 'closed',
    polls: { circuit: 'closed', openMs: 0 },
  })
  memory.circuits.trip('one/film polls', { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }, null)
  t.match(show(operations.videos as Operation, film, 'film'), {
    circuit: 'closed',
    polls: { circuit: 'open', openMs: 30_000 },
  })
  t.equal(show(chat.operation as Operation, catalog(), 'm').polls, null, 'a chat creates no job')
  t.end()
})

t.test('the query of an exchange has what its headers and its request say', async t => {
  const one = new ExchangeQuery(asking(catalog(), { stream: true, user: 'u', service_tier: 'flex' }))
  t.match(one, { streaming: true, session: 'u', failover: true, promptTokens: 1, terms: { tier: 'flex' } })
  const headers = { 'x-session-id': 's', 'x-no-fallback': 'true' }
  t.match(new ExchangeQuery(asking(catalog(), { user: 'u' }, { headers })), {
    streaming: false,
    session: 's',
    failover: false,
  })
  const other = { 'x-no-fallback': '1' }
  t.match(new ExchangeQuery(asking(catalog(), {}, { headers: other })), { session: undefined, failover: true })
})

t.test('a prompt is counted once, and only when a plan depends on its length', async t => {
  let counts = 0
  const operation = {
    ...chat.operation!,
    promptSize: () => {
      counts++
      return 4
    },
  }
  const ex = exchange({
    endpoint: { ...chat, operation },
    request: { model: 'n', messages: [] },
    snapshot: { catalog: catalog() },
  })
  const query = new ExchangeQuery(ex)
  plan(query, { auto: [] })
  t.equal(counts, 0, 'one offer takes it, however long it is')
  t.strictSame([query.promptTokens, query.promptTokens, ex.prompt.tokens, counts], [1, 1, 1, 1])
})
