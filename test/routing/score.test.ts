/** Scores against the formula of docs/contract.md#routing-score, term by term. */
import t from 'tap'
import type { Mapping } from '../../src/core/translator.ts'
import { candidatesOf } from '../../src/routing/candidate.ts'
import { priceOf } from '../../src/routing/ranking.ts'
import { type Facts, type Situation, scoresOf, weightsFor } from '../../src/routing/score.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'
import { settingsOf } from './kit.ts'

const unknown: Facts = {
  price: undefined,
  uptime: undefined,
  throughput: undefined,
  latency: undefined,
  caching: false,
  priority: 1,
}
const situation: Situation = { strategy: 'auto', streaming: false, long: false, image: false }
/** What each of the candidates gets, to four digits. */
function scored(candidates: Partial<Facts>[], now: Partial<Situation> = {}, options: object = {}) {
  const settings = settingsOf(options)
  const weights = weightsFor({ ...situation, ...now }, settings)
  return scoresOf(
    candidates.map(facts => ({ ...unknown, ...facts })),
    weights,
    settings,
  )
}
const digits = (value: number) => Number(value.toFixed(4))
const terms = (scores: ReturnType<typeof scored>, name: 'price' | 'uptime' | 'throughput' | 'latency' | 'cache') =>
  scores.map(score => digits(score.terms[name]))

t.test('the worked example of the field notes comes out', async t => {
  const [a, b] = scored([
    { price: 1, uptime: 100, throughput: 60 },
    { price: 1.5, uptime: 99, throughput: 120 },
  ])
  t.strictSame(
    [a, b].map(score => [score!.terms.price, score!.terms.uptime, score!.terms.throughput].map(digits)),
    [
      [0, 0, 1],
      [0.5, 0.0101, 0],
    ],
  )
  t.strictSame(
    [a, b].map(score => digits(score!.base)),
    [0.2143, 0.2179],
  )
  t.strictSame(
    [a, b].map(score => digits(score!.total)),
    [0.2143, 0.2179],
  )
})

t.test('each term is how much worse than the best candidate one is', async t => {
  t.strictSame(terms(scored([{ price: 2 }, { price: 1 }, { price: 5 }]), 'price'), [1, 0, 4])
  t.strictSame(terms(scored([{ price: 0 }, { price: 2 }, { price: 5 }]), 'price'), [0, 1, 2.5], 'the cheapest is free')
  t.strictSame(terms(scored([{ price: 0 }, { price: 0 }]), 'price'), [0, 0])
  t.strictSame(terms(scored([{ price: 1 }, {}, { price: 3 }]), 'price'), [0, 2, 2], 'an unknown price is the dearest')
  t.strictSame(terms(scored([{}, {}]), 'price'), [0, 0])
  t.strictSame(terms(scored([{ uptime: 100 }, { uptime: 80 }, { uptime: 0 }]), 'uptime'), [0, 0.25, 1])
  t.strictSame(terms(scored([{ uptime: 0 }, { uptime: 0 }]), 'uptime'), [1, 1])
  t.strictSame(terms(scored([{ throughput: 100 }, { throughput: 50 }, { throughput: 10 }]), 'throughput'), [0, 1, 3])
  t.strictSame(terms(scored([{ throughput: 100 }, { throughput: 0 }]), 'throughput'), [0, 3], 'it is capped')
  t.strictSame(terms(scored([{ latency: 200 }, { latency: 500 }, { latency: 100 }]), 'latency'), [1, 4, 0])
  t.strictSame(
    terms(scored([{ latency: 0 }, { latency: 500 }]), 'latency'),
    [0, 499],
    'no latency is below a millisecond',
  )
  t.strictSame(terms(scored([{ caching: true }, {}]), 'cache'), [0, 1])
})

t.test('what was not measured is 100 percent up, at a second and 50 tokens a second', async t => {
  const measured = { uptime: 50, throughput: 100, latency: 250 }
  const scores = scored([measured, {}])
  t.strictSame(terms(scores, 'uptime'), [1, 0])
  t.strictSame(terms(scores, 'throughput'), [0, 1])
  t.strictSame(terms(scores, 'latency'), [0, 3])
  const thresholds = { default_uptime: 25, default_latency: 500, default_throughput: 10 }
  const others = scored([measured, {}], {}, { thresholds })
  t.strictSame(
    [terms(others, 'uptime'), terms(others, 'latency')],
    [
      [0, 1],
      [0, 1],
    ],
  )
})

t.test('a lack of uptime and of priority is punished besides', async t => {
  const penalties: [uptime: number, penalty: number][] = [
    [100, 0],
    [95, 0],
    [90, 0.0693],
    [80, 0.6233],
    [70, 1.7313],
    [50, 5.6094],
    [0, 25],
  ]
  for (const [uptime, penalty] of penalties) {
    const [score] = scored([{ uptime }])
    t.equal(digits(score!.uptimePenalty), penalty, `${uptime} %`)
    t.equal(digits(score!.total), digits(score!.base + penalty))
  }
  t.strictSame(
    scored([{ priority: 1 }, { priority: 0.2 }, { priority: 3 }]).map(({ total }) => digits(total)),
    [0, 0.8, -2],
  )
})

t.test('weights count only where they say something, and the strategies of a request have their own', async t => {
  const rows: [
    Partial<Situation>,
    [price: number, uptime: number, throughput: number, latency: number, cache: number],
  ][] = [
    [{}, [0.6, 0.5, 0.3, 0, 0]],
    [{ streaming: true }, [0.6, 0.5, 0.3, 0.075, 0]],
    [{ long: true }, [0.6, 0.5, 0.3, 0, 0.2]],
    [{ image: true }, [1, 0.5, 0.3, 0, 0]],
    [{ strategy: 'price', streaming: true, long: true }, [0.9, 0.1, 0, 0, 0]],
    [{ strategy: 'throughput', streaming: true }, [0, 0.1, 0.9, 0, 0]],
    [{ strategy: 'latency', streaming: true }, [0, 0.1, 0, 0.9, 0]],
    [{ strategy: 'latency' }, [0, 0.1, 0, 0, 0]],
  ]
  const settings = settingsOf({ weights: { cache: 0.2 } })
  for (const [now, [price, uptime, throughput, latency, cache]] of rows) {
    const weights = weightsFor({ ...situation, ...now }, settings)
    t.strictSame(weights, { price, uptime, throughput, latency, cache }, JSON.stringify(now))
  }
  // 0.6 × 1 + 0.3 × 1 + 0.075 × 1, of 1.475.
  const worse = { price: 2, uptime: 100, throughput: 50, latency: 200 }
  const [, slow] = scored([{ price: 1, uptime: 100, throughput: 100, latency: 100 }, worse], { streaming: true })
  t.equal(digits(slow!.base), digits(0.975 / 1.475))
  const none = { price: 0, uptime: 0, throughput: 0, latency: 0 }
  const [cheap, dear] = scored([{ price: 1, uptime: 50 }, worse], {}, { weights: none })
  t.strictSame([digits(cheap!.base), digits(dear!.base)], [0, 1], 'without any weight, the price decides')
})

t.test('the price is the mean of input and output, and that of a cached prompt where one is expected', async t => {
  const priced = (mapping: Partial<Mapping>) => {
    const made = target({ mapping }).mapping
    const [candidate] = candidatesOf(made)
    return (tokens: number, cached = false) => {
      const price = priceOf(candidate!, tokens, cached, settingsOf({}))
      return price === undefined ? undefined : digits(price / 1e6)
    }
  }
  const plain = priced({ price: flat({ prompt: '2', completion: '6', input_cache_read: '0.2' }) })
  t.equal(plain(10), 4)
  // (0.2 × 0.1 + 2 × 0.9 + 6 × 0.2) / 2
  t.equal(plain(10, true), 1.51)
  t.equal(priced({ price: flat({ prompt: '2', completion: '6' }) })(10, true), 1.6, 'caching saves nothing')
  t.equal(priced({ price: flat({ prompt: '2' }) })(10), 1, 'vectors cost no output')
  t.equal(priced({ price: undefined })(10), undefined)
  const { rates } = flat({ prompt: '1', completion: '1' })
  const tiers = [{ above: 100, rates: flat({ prompt: '3', completion: '5' }).rates }]
  const tiered = priced({ price: { rates, tiers } })
  t.strictSame([tiered(100), tiered(101)], [1, 4])
})

t.test('models that make images are compared by the price of an image', async t => {
  const model = { ...target().mapping.model, output: ['image'] }
  const imagePrice = (mapping: Partial<Mapping>) => {
    const [candidate] = candidatesOf(target({ mapping: { ...mapping, model } }).mapping)
    t.ok(candidate!.image)
    return priceOf(candidate!, 10, false, settingsOf({}))
  }
  t.equal(imagePrice({ pricingBySize: { per_image: { '1024x1024': '0.04', '512x512': '0.02' } } }), 0.02e12)
  t.equal(imagePrice({ price: { rates: { request: 30_000_000_000n }, tiers: [] } }), 30_000_000_000)
  t.equal(imagePrice({}), undefined)
})
