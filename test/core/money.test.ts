/** Money: what usage costs, exactly, and how amounts are read and written. */
import fc from 'fast-check'
import t from 'tap'
import { costOf } from '../../src/core/cost.ts'
import { type Cost, formatDecimal, formatMoney, type Price, parseDecimal } from '../../src/core/money.ts'
import { type Axis, axes, type Usage } from '../../src/core/usage.ts'
import { runs } from '../helpers/runs.ts'
import { base, flat, goldens, type Rates, rates } from './prices.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const parts = ['input', 'cachedInput', 'cacheWrite', 'output', 'request', 'webSearch'] as const
/** Amounts in USD; those that are zero are left out. */
const shown = (cost: Cost | null) =>
  cost && Object.fromEntries(Object.entries(cost).flatMap(([key, n]) => (n === 0n ? [] : [[key, formatMoney(n)]])))

const RUNS = runs(10_000)

t.test('usage costs what one computes by hand', async t => {
  for (const [says, written, usage, cost] of goldens) t.strictSame(shown(costOf(usage, flat(written))), cost, says)
  t.equal(costOf({}, undefined), null, 'an unknown price list')
})

t.test('a tier begins above its bound', async t => {
  const tiers = [
    { above: 200_000, rates: rates({ prompt: '5', completion: '15' }) },
    { above: 400_000, rates: rates({ prompt: '8', completion: '20' }) },
  ]
  const total = (prompt: number) =>
    formatMoney(costOf({ prompt, completion: 100 }, { rates: rates(base), tiers })!.total)
  t.strictSame([200_000, 200_001, 400_000, 400_001].map(total), ['0.501', '1.001505', '2.0015', '3.202008'])
})

t.test('a discount is taken off every part, and a service tier multiplies what tokens cost', async t => {
  const price = (more: Partial<Price>): Price => ({
    ...flat({ ...base, request: '0.001', web_search: '0.01' }),
    ...more,
  })
  const usage = { prompt: 1000, input_cache_read: 600, completion: 500, web_search: 1 }
  const all = { input: '0.001', cachedInput: '0.00015', output: '0.005', request: '0.001', webSearch: '0.01' }
  t.match(shown(costOf(usage, price({}))), { ...all, total: '0.01715' })
  const half = { input: '0.0005', cachedInput: '0.000075', output: '0.0025', request: '0.0005', webSearch: '0.005' }
  t.match(shown(costOf(usage, price({ discount: 500_000 }))), { ...half, total: '0.008575' })
  const tierFactors = { flex: 500_000n, priority: 2_500_000n }
  const flex = { ...half, request: '0.001', webSearch: '0.01', total: '0.014075' }
  t.match(shown(costOf(usage, price({ tierFactors }), { tier: 'flex' })), flex)
  for (const tier of ['default', 'constructor']) {
    t.match(shown(costOf(usage, price({ tierFactors }), { tier })), all, tier)
  }
  const priority = { input: '0.0025', cachedInput: '0.000375', output: '0.0125', total: '0.026375' }
  t.match(shown(costOf(usage, price({ tierFactors }), { tier: 'priority' })), priority)
  t.match(shown(costOf(usage, price({ tierFactors, discount: 100_000 }), { tier: 'priority' })), { total: '0.0237375' })
  t.equal(costOf(usage, price({ discount: 1_000_000 }))!.total, 0n, 'all of it')
})

t.test('what is counted by its own unit has its own price', async t => {
  const usd = (amount: string) => parseDecimal(amount, 12)
  const sized = { perImage: { '1K': usd('0.04'), '4K': usd('0.16'), default: usd('0.05') } }
  const long = { perSecond: { '720p': usd('0.1'), '1080p': usd('0.3') } }
  const rows: [says: string, price: Partial<Price>, usage: Usage, sizes: string[], cost: object | null][] = [
    ['images by size', sized, { output_images: 2 }, ['4K'], { output: '0.32', imageOutput: '0.32', total: '0.32' }],
    ['images of another size', sized, { output_images: 1 }, ['2K'], { total: '0.05' }],
    ['images by the first size that is known', sized, { output_images: 1 }, ['hd/4K', '4K', '1K'], { total: '0.16' }],
    [
      'images beside text, their tokens not twice',
      { ...sized, rates: rates({ prompt: '1', completion: '2' }) },
      { prompt: 1000, completion: 1500, image_output: 1290, output_images: 1 },
      ['1K'],
      { input: '0.001', output: '0.04042', imageOutput: '0.04', total: '0.04142' },
    ],
    ['seconds of no named size cost the most', long, { second: 2.5 }, [], { output: '0.75', total: '0.75' }],
    ['seconds', long, { second: 8 }, ['720p'], { output: '0.8', total: '0.8' }],
    [
      'hours of audio, to the millisecond',
      { rates: rates({ input_audio_hour: '0.36' }) },
      { input_audio_hour: 0.01 },
      [],
      { input: '0.0036', audioInput: '0.0036', total: '0.0036' },
    ],
    [
      'pages',
      { rates: rates({ ocr_page: '0.002' }) },
      { ocr_page: 7, prompt: 900 },
      [],
      { input: '0.014', total: '0.014' },
    ],
    ['seconds without a price', { rates: rates(base) }, { second: 3 }, [], null],
    ['pages that tokens pay for', { rates: rates(base) }, { ocr_page: 3, prompt: 1000 }, [], { total: '0.0025' }],
    ['searches without a price', { rates: rates(base) }, { prompt: 1, web_search: 1 }, [], null],
    ['searches at a price for each request', { rates: rates({ request: '1' }) }, { web_search: 1 }, [], null],
  ]
  for (const [says, price, usage, sizes, cost] of rows) {
    const got = shown(costOf(usage, { rates: {}, tiers: [], ...price }, { sizes }))
    if (cost === null) t.equal(got, null, says)
    else t.match(got, cost, says)
  }
})

t.test('images are charged by their tokens, as far as the provider reports them', async t => {
  const price = flat({ prompt: '0.3', completion: '2.5', image_output: '30' })
  const cost = (usage: Usage) => shown(costOf(usage, price))
  t.match(cost({ completion: 1300, image_output: 1290, output_images: 1 }), {
    imageOutput: '0.0387',
    output: '0.038725',
  })
  t.match(
    cost({ completion: 1290, output_images: 1 }),
    { imageOutput: '0.0387', output: '0.0387' },
    'all of the answer',
  )
  t.match(cost({ output_images: 2 }), { imageOutput: '0.0672' }, '1120 tokens each')
  const pictures = flat({ prompt: '0.3', image_output: '30' })
  t.match(
    shown(costOf({ completion: 1290, image_output: 1290 }, pictures)),
    { total: '0.0387' },
    'nothing but pictures',
  )
  t.equal(costOf({ completion: 1291, image_output: 1290 }, pictures), null, 'words that have no price')
})

t.test('CC-11 parts sum to the total, which is the exact sum rounded half up once', async t => {
  const amount = fc.oneof(fc.nat(10_000_000), fc.nat(100), fc.constantFrom(Number.NaN, -1, -0.5, 0.4, 7.5))
  const usages = fc.record(Object.fromEntries(axes.map(axis => [axis, amount])), { requiredKeys: [] })
  const rate = fc.bigInt({ min: 0n, max: 10_000_000_000n })
  const priced = fc.record(Object.fromEntries(axes.map(axis => [axis, rate])), { requiredKeys: [] })
  const millionths = fc.oneof(fc.constant(0), fc.nat(1_000_000))
  const bySize = fc.option(fc.record({ default: rate }), { nil: undefined })
  const prices = fc.record({
    rates: priced,
    tiers: fc.tuple(fc.record({ above: fc.nat(1_000_000), rates: priced })),
    discount: millionths,
    tierFactors: fc.record({ flex: fc.bigInt({ min: 1n, max: 3_000_000n }) }),
    perImage: bySize,
    perSecond: bySize,
  })
  let unknown = 0
  const holds = fc.property(usages, prices, fc.constantFrom('flex', undefined), (usage: Usage, price: Price, tier) => {
    const cost = costOf(usage, price, { tier })
    const used = (usage.prompt ?? 0) > price.tiers[0]!.above ? price.tiers[0]!.rates : price.rates
    if (cost === null) {
      unknown++
      return lacks(usage, used, price)
    }
    // A thousand times the rates gives whole nano-dollars, and so the exact sum in pico-dollars.
    const exact = costOf(usage, { ...thousandfold(price), tiers: [], rates: times(used) }, { tier })!
    const sum = (cost: Cost) => parts.reduce((sum, part) => sum + cost[part], 0n)
    const within = (a: bigint, b: bigint, bound: bigint) => (a - b) ** 2n <= bound ** 2n
    return (
      sum(cost) === cost.total &&
      within(cost.total * 1000n, exact.total, 501n) &&
      Object.values(cost).every(part => part >= 0n) &&
      parts.every(part => within(exact[part], cost[part] * 1000n, 2000n))
    )
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: RUNS }))
  t.ok(unknown > RUNS / 100 && unknown < 0.9 * RUNS, `${unknown} of ${RUNS} were unknown`)
})

const times = (rates: Rates): Rates =>
  Object.fromEntries(Object.entries(rates).map(([axis, rate]) => [axis, rate * 1000n]))
const thousandfold = (price: Price): Price => ({
  ...price,
  perImage: price.perImage && (times(price.perImage) as Price['perImage']),
  perSecond: price.perSecond && (times(price.perSecond) as Price['perSecond']),
})

/** Whether something that was used has no price, said in another way than the formula does. */
function lacks(usage: Usage, rates: Rates, { perImage, perSecond }: Price): boolean {
  const used = (axis: Axis, unit = 1) => Math.round((usage[axis] ?? 0) * unit) > 0
  if (used('web_search') && rates.web_search === undefined) return true
  const own: [used: boolean, rate: unknown][] = [
    [used('ocr_page'), rates.ocr_page],
    [used('input_audio_hour', 3_600_000), rates.input_audio_hour],
    [used('second', 1000), perSecond],
    [used('output_images'), perImage],
  ]
  const byToken = rates.prompt !== undefined || rates.completion !== undefined
  if (rates.request !== undefined && (used('output_images') || !byToken)) return false
  if (own.some(([used, rate]) => used && rate !== undefined)) return false
  const tokens = (['prompt', 'completion'] as const).filter(axis => used(axis))
  if (tokens.length > 0) return tokens.some(axis => rates[axis] === undefined)
  return own.some(([used], at) => used && !(at === own.length - 1 && rates.image_output !== undefined))
}

t.test('decimals are read exactly, written shortly, and refused when they are something else', async t => {
  const exact = fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n }), fc.nat(12), (value, places) => {
    const written = formatDecimal(value, places)
    return parseDecimal(written, places) === value && !/\.$|\.\d*0$|e/.test(written)
  })
  t.doesNotThrow(() => fc.assert(exact))
  t.equal(parseDecimal('1.50000000000', 2), 150n, 'zeros at the end are no digits')
  t.equal(formatDecimal(-1_500_000_000n, 9), '-1.5')
  for (const wrong of ['', '-1', '+1', '1e3', '1.', '.5', ' 1', '1,5', '0x1', 'NaN', '1_000', '٣', '0.0000000001']) {
    t.throws(() => parseDecimal(wrong, 9), RangeError, wrong)
  }
})
