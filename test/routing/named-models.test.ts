/** What a request says of its routing: model lists, suffixes and preferences of providers (docs/routing.md#routing-by-request). */
import fc from 'fast-check'
import t from 'tap'
import type { Catalog } from '../../src/core/catalog.ts'
import { offerOf } from '../../src/core/offer.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { accessOf } from '../../src/policy/rules.ts'
import { candidateTargetOf } from '../../src/routing/candidate.ts'
import { namedModels, plansOf } from '../../src/routing/named-models.ts'
import { TargetQueue } from '../../src/routing/target-queue.ts'
import { TargetSelector } from '../../src/routing/target-selector.ts'
import { runs } from '../helpers/runs.ts'
import { rule } from '../policy/kit.ts'
import { catalogOf, Memory, priced, provider, queryOf, settingsOf } from './kit.ts'

const settings = settingsOf({ exploration: 0, preference: { enabled: false } })

const [cheap, quick, third] = [provider('cheap'), provider('quick'), provider('third')]
const bare = provider('bare', { credentials: [] })
/** `a` at three providers, `b` at two, `c` at one that also has `eyes`; `d` at one without a credential beside another. */
const catalog = (): Catalog =>
  catalogOf({
    a: {
      offers: [
        [cheap, priced('1')],
        [quick, priced('4')],
        [third, priced('2')],
      ],
    },
    b: {
      offers: [
        [quick, priced('2')],
        [third, priced('3')],
      ],
    },
    c: { offers: [[third, priced('9')]] },
    d: {
      offers: [
        [bare, priced('1')],
        [cheap, priced('8')],
      ],
    },
  })

/** A memory in which `quick` writes ten times as fast as the others. */
function measured(): Memory {
  const memory = new Memory()
  for (const offer of ['cheap/a', 'third/a', 'third/b']) memory.attempts(offer, 20, 0, { tokensPerSecond: 20 })
  for (const offer of ['quick/a', 'quick/b']) memory.attempts(offer, 20, 0, { tokensPerSecond: 200 })
  return memory
}

/** Offers in the order in which they are tried when each fails, or the refusal. */
function tried(fields: object, { memory = new Memory(), facts = {}, attempts = Number.POSITIVE_INFINITY } = {}) {
  try {
    const planned = plansOf(namedModels(queryOf(catalog(), fields, facts)), settings)
    const queue = new TargetQueue(new TargetSelector(settings, memory).chooseAmong(planned), memory.circuits, null)
    const offers: string[] = []
    for (let step = queue.next(attempts); step; step = queue.next(attempts - offers.length)) {
      offers.push(candidateTargetOf(step.target).candidate.key)
      queue.failed(step)
      if (offers.length >= attempts) break
    }
    return offers.join(' ')
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return `${thrown.status} ${thrown.param}: ${thrown.message}`
  }
}

t.test('models are tried in order, each at its own providers', t => {
  const rows: [fields: object, offers: string][] = [
    [{ model: 'c' }, 'third/c'],
    [{ model: 'b', models: ['a'] }, 'quick/b third/b cheap/a third/a quick/a'],
    [{ model: 'b', models: ['b', 'c', 'b'] }, 'quick/b third/b third/c'],
    [{ model: 'quick/a', models: ['a'] }, 'quick/a cheap/a third/a'],
    [{ model: 'a', models: ['third/a', 'c'] }, 'cheap/a third/a quick/a third/c'],
    // One that cannot serve the request is passed over.
    [{ model: 'd', models: ['c'], provider: { only: ['third'] } }, 'third/c'],
  ]
  for (const [fields, offers] of rows) t.equal(tried(fields), offers, JSON.stringify(fields))
  t.equal(tried({ model: 'b', models: ['c'] }, { facts: { failover: false } }), 'quick/b', 'x-no-fallback')
  t.end()
})

t.test('an unknown provider is corrected to one that serves the caller', t => {
  const others = catalogOf({ a: { offers: [[provider('shop-one', { organizations: ['shop'] })], [cheap]] } })
  const refused = (fields: object, facts = {}) => {
    const query = queryOf(others, { model: 'a', provider: fields }, facts)
    const thrown = t.throws(() => namedModels(query)) as unknown as GatewayError
    return thrown.message
  }
  t.equal(refused({ only: ['shop-on'] }), 'provider.only[0]: there is no provider "shop-on".')
  t.match(refused({ only: ['cheep'] }), / Did you mean "cheap"\?$/)
  const shop = { principal: { ...queryOf(others).principal!, orgName: 'shop' } }
  t.match(refused({ only: ['shop-on'] }, shop), / Did you mean "shop-one"\?$/)
  t.end()
})

t.test('the last attempts are for models that have had none', t => {
  const list = { model: 'a', models: ['b', 'c'] }
  t.equal(tried(list, { attempts: 3 }), 'cheap/a quick/b third/c')
  t.equal(tried(list, { attempts: 4 }), 'cheap/a third/a quick/b third/c')
  t.equal(tried({ model: 'a', models: ['b'] }, { attempts: 3 }), 'cheap/a third/a quick/b')
  t.equal(tried({ model: 'a' }, { attempts: 3 }), 'cheap/a third/a quick/a')
  t.end()
})

t.test('an open circuit moves a model behind the others, and never lets a request out of what it names', t => {
  const memory = new Memory()
  memory.circuits.trip('third/c', { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }, 'org-1')
  memory.circuits.trip('third/c', { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }, 'org-2')
  t.equal(tried({ model: 'c', models: ['b'] }, { memory }), 'quick/b third/b third/c')
  memory.circuits.trip('cheap/a', { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }, 'org-1')
  memory.circuits.trip('cheap/a', { failures: 1, baseMs: 30_000, maxMs: 300_000, jitter: 0 }, 'org-2')
  t.equal(tried({ model: 'a', provider: { only: ['cheap'] } }, { memory }), 'cheap/a')
  t.equal(tried({ model: 'a', provider: { order: ['cheap'], allow_fallbacks: false } }, { memory }), 'cheap/a')
  t.equal(tried({ model: 'cheap/a', provider: { allow_fallbacks: false } }, { memory }), 'cheap/a')
  t.end()
})

t.test('preferences of providers order and bound what is tried', t => {
  const rows: [provider: object, offers: string][] = [
    [{}, 'cheap/a third/a quick/a'],
    [{ order: ['quick'] }, 'quick/a cheap/a third/a'],
    [{ order: ['third', 'quick'] }, 'third/a quick/a cheap/a'],
    [{ order: ['bare', 'third'] }, 'third/a cheap/a quick/a'],
    [{ order: [] }, 'cheap/a third/a quick/a'],
    [{ order: ['third', 'quick'], allow_fallbacks: false }, 'third/a quick/a'],
    [{ allow_fallbacks: false }, 'cheap/a'],
    [{ allow_fallbacks: true }, 'cheap/a third/a quick/a'],
    [{ only: ['quick', 'third'] }, 'third/a quick/a'],
    [{ only: ['quick', 'third'], order: ['quick'] }, 'quick/a third/a'],
    [{ ignore: ['cheap'] }, 'third/a quick/a'],
    [{ max_price: { prompt: '2' } }, 'cheap/a third/a'],
    [{ max_price: { prompt: '9', completion: '1.999999' } }, 'cheap/a'],
    [{ sort: 'price' }, 'cheap/a third/a quick/a'],
  ]
  for (const [preferences, offers] of rows) {
    t.equal(tried({ model: 'a', provider: preferences }), offers, JSON.stringify(preferences))
  }
  t.end()
})

t.test('suffixes and sort are the strategies of routing, which wins over both', t => {
  const memory = measured()
  const [byPrice, bySpeed] = ['cheap/a third/a quick/a', 'quick/a cheap/a third/a']
  const rows: [fields: object, offers: string][] = [
    [{ model: 'a:floor' }, byPrice],
    [{ model: 'a:nitro' }, bySpeed],
    [{ model: 'a', provider: { sort: 'throughput' } }, bySpeed],
    [{ model: 'a:floor', provider: { sort: 'throughput' } }, byPrice],
    [{ model: 'a:nitro', routing: 'price' }, byPrice],
    [{ model: 'a', routing: 'price', provider: { sort: 'throughput' } }, byPrice],
    [{ model: 'a:nitro', models: ['b'] }, `${bySpeed} quick/b third/b`],
    [{ model: 'c', models: ['a:nitro'] }, `third/c ${bySpeed}`],
    // A provider is named: there is nothing to sort.
    [{ model: 'third/a:nitro' }, 'third/a'],
    [{ model: 'third/a:floor', models: ['b:floor'] }, 'third/a quick/b third/b'],
  ]
  for (const [fields, offers] of rows) t.equal(tried(fields, { memory }), offers, JSON.stringify(fields))
  t.end()
})

t.test('what means nothing is refused by its name', t => {
  const rows: [fields: object, refusal: RegExp][] = [
    [{ model: 'nope:floor' }, /^404 model: .*"nope" does not exist/],
    [{ model: 'nope', models: ['nope', 'a'] }, /^404 models: /],
    [{ model: 'a', models: ['b', 'nope'] }, /^404 models: .*"nope" does not exist/],
    [{ model: 'a:east' }, /^404 model: /],
    [{ model: 'a', provider: { order: ['quick', 'quik'] } }, /^400 provider\.order\[1\]: .*"quik".*"quick"/],
    [{ model: 'a', provider: { only: ['nope'] } }, /^400 provider\.only\[0\]: .*"nope"/],
    [{ model: 'a', provider: { ignore: ['nope'] } }, /^400 provider\.ignore\[0\]: .*"nope"/],
    [{ model: 'b', provider: { only: ['cheap'] } }, /^400 provider\.only: .*"b".*quick or third/],
    [{ model: 'a', provider: { only: [] } }, /^400 provider\.only: /],
    [{ model: 'c', provider: { ignore: ['third'] } }, /^400 provider\.ignore: /],
    [{ model: 'a', provider: { max_price: { prompt: '0.999999' } } }, /^400 provider\.max_price: /],
    [{ model: 'c', provider: { order: ['quick'], allow_fallbacks: false } }, /^400 provider\.order: /],
    [{ model: 'third/a', provider: { only: ['quick'] } }, /^400 provider\.only: /],
    [{ model: 'd', provider: { only: ['bare'] } }, /^400 provider: .*no provider of it has a credential/],
    [{ model: 'a', models: ['b'], provider: { only: ['bare'] } }, /^400 provider\.only: .*"a"/],
    [{ model: 'third/a', provider: { sort: 'price' } }, /^400 provider\.sort: /],
    [{ model: 'third/a', routing: 'price' }, /^400 routing: /],
  ]
  for (const [fields, refusal] of rows) t.match(tried(fields), refusal, JSON.stringify(fields))
  t.end()
})

t.test('rules of a key are checked for each model of a list', t => {
  const levels = (...models: string[]) => [{ whose: 'the API key' as const, rules: [rule('deny_models', { models })] }]
  const denying = (...models: string[]) => ({
    facts: { access: accessOf({ id: 'x', levels: levels(...models), compliance: noDemands }) },
  })
  t.equal(tried({ model: 'a', models: ['b'] }, denying('a')), 'quick/b third/b')
  t.equal(tried({ model: 'a', models: ['b'] }, denying('b')), 'cheap/a third/a quick/a')
  t.match(tried({ model: 'a', models: ['b'] }, denying('a', 'b')), /^403 null: Access denied: Model a/)
  t.end()
})

t.test('the name of an answer is as the caller wrote it', t => {
  const names = (fields: object) =>
    namedModels(queryOf(catalog(), fields)).map(({ requested }) => [
      requested.requestedModel,
      requested.requestedProvider,
    ])
  t.strictSame(names({ model: 'a:floor', models: ['quick/b:nitro'] }), [
    ['a:floor', null],
    ['b:nitro', 'quick'],
  ])
  t.end()
})

t.test('a session stays with its provider for each model of a list', t => {
  const memory = new Memory()
  const selector = new TargetSelector(settings, memory)
  const asked = () => queryOf(catalog(), { model: 'a', models: ['b'] }, { session: 's' })
  const choice = selector.chooseAmong(plansOf(namedModels(asked()), settings))
  const of = (key: string) => choice.ranked.find(({ candidate }) => candidate.key === key)!.candidate
  selector.keep(choice, of('third/b'))
  const next = selector.chooseAmong(plansOf(namedModels(asked()), settings))
  t.strictSame(
    next.ranked.map(({ candidate }) => candidate.key),
    ['cheap/a', 'third/a', 'quick/a', 'third/b', 'quick/b'],
  )
  t.end()
})

const ids = ['cheap', 'quick', 'third', 'bare']
const someIds = fc.option(fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 4 }), { nil: undefined })
const names = ['a', 'b', 'c', 'd'].flatMap(name => [name, `${name}:floor`, `${name}:nitro`])

t.test('whatever a request says, only what it leaves is tried, in its order, and each once', t => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4, selector: name => name[0]! }),
      someIds,
      someIds,
      someIds,
      fc.option(fc.boolean(), { nil: undefined }),
      fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
      fc.integer({ min: 1, max: 4 }),
      (list, order, only, ignore, allow_fallbacks, most, attempts) => {
        const max_price = most === undefined ? undefined : { prompt: String(most) }
        const preferences = JSON.parse(JSON.stringify({ order, only, ignore, allow_fallbacks, max_price }))
        const [model, ...models] = list
        const fields = { model, ...(models.length > 0 && { models }), provider: preferences }
        const all = tried(fields)
        if (/^4\d\d (?:model|provider)/.test(all)) return
        const offers = all.split(' ')
        t.equal(new Set(offers).size, offers.length)
        const prices = new Map(
          [...catalog().models.values()].flatMap(one =>
            one.mappings.map(mapping => [offerOf(mapping), Number(mapping.pricing.prompt)] as [string, number]),
          ),
        )
        const bound = [only, ignore === undefined ? undefined : ids.filter(id => !ignore.includes(id))]
        const isListed = order !== undefined && order.length > 0
        if (isListed && allow_fallbacks === false) bound.push(order)
        for (const offer of offers) {
          const [id] = offer.split('/')
          for (const allowed of bound) t.ok(!allowed || allowed.includes(id!), offer)
          t.ok(most === undefined || prices.get(offer)! <= most, offer)
        }
        if (!isListed && allow_fallbacks === false) t.equal(new Set(offers.map(offer => offer.split('/')[0])).size, 1)
        const turns = offers.map(offer => list.findIndex(name => name[0] === offer.split('/')[1]))
        t.strictSame(turns, [...turns].sort(), 'models in order')
        // As many models get an attempt as there are attempts.
        const named = new Set(turns).size
        const some = tried(fields, { attempts: Math.max(attempts, named) }).split(' ')
        if (allow_fallbacks !== false) t.equal(new Set(some.map(offer => offer.split('/')[1])).size, named)
      },
    ),
    { numRuns: runs(3000) },
  )
  t.end()
})
