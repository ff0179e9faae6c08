/** The arithmetic of the bench: what it would make of figures that are known. */
import t from 'tap'
import { verdicts } from './bounds.mjs'
import { difference, median, percentile, ratio } from './stats.mjs'

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1)

t.test('percentiles are values that were measured, medians lie in the middle, in whatever order they come', async t => {
  const shuffled = upTo(100).sort((a, b) => ((a * 37) % 101) - ((b * 37) % 101))
  for (const [p, value] of [
    [0, 1],
    [0.5, 50],
    [0.99, 99],
    [0.991, 100],
    [1, 100],
  ] as const) {
    t.equal(percentile(shuffled, p), value, `p${p * 100}`)
  }
  t.equal(percentile([7], 0.99), 7)
  for (const [values, value] of [
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[10, 9], 9.5],
    [[5], 5],
  ] as const) {
    t.equal(median(values), value, JSON.stringify(values))
  }
  t.equal(median(shuffled), 50.5)
  t.same(shuffled.length, 100)
  for (const none of [median([]), percentile([], 0.5)]) t.ok(Number.isNaN(none), 'nothing measured is no number')
})

t.test('slices are compared with the ones beside them, so that a machine that slows both changes nothing', async t => {
  const moods = [1, 1, 5, 5, 1, 2, 9, 1, 1, 3]
  const floor = moods.map(mood => 100 * mood)
  const gateway = moods.map(mood => 140 * mood)
  t.equal(ratio(gateway, floor).median.toFixed(6), '1.400000')
  t.equal(ratio(gateway, floor).ofSums.toFixed(6), '1.400000')
  const hiccup = gateway.with(3, 50_000)
  t.equal(ratio(hiccup, floor).median.toFixed(6), '1.400000', 'one slice that another process spoiled counts for one')
  t.ok(ratio(hiccup, floor).ofSums > 10, 'and shows in the sums, as a cost that comes in lumps does')
  const added = floor.map((value, at) => value + (at % 2 === 0 ? 8 : 12))
  t.strictSame(difference(added, floor), { median: 10, low: 8, high: 12 })
  t.strictSame(difference(floor, added).median, -10)
  t.throws(() => ratio([1, 2], [1]), RangeError, 'slices that have no other beside them')
  t.throws(() => difference([1], [1, 2]), RangeError)
})

t.test(
  'a bound holds up to its limit, breaks beyond it or by no number, and is left out when nothing was measured',
  async t => {
    const unary = (median: number, added: object | null = null) => ({
      loads: [
        {
          name: 'unary',
          rows: [
            { target: 'floor', ratio: null, addedMs: null },
            { target: 'other', ratio: { median: 99 }, addedMs: { p50: 99, p99: 99 } },
            { target: 'gateway', ratio: { median }, addedMs: added },
          ],
        },
      ],
    })
    t.strictSame(verdicts({}), [])
    for (const [value, holds] of [
      [1.4, true],
      [1.41, false],
      [Number.NaN, false],
    ] as const) {
      t.match(verdicts(unary(value)), [{ name: 'unary, CPU', limit: 1.4, value, holds }])
      t.equal(verdicts(unary(value)).length, 1)
    }
    const held = { target: 'gateway', idleBytes: 100e6, streamBytes: 40_001, lagP99Ms: 0 }
    const results = {
      ...unary(1, { p50: -0.1, p99: 3.1 }),
      streams: [held],
      start: { medianMs: 500 },
      workers: { alone: 1.6 },
    }
    t.strictSame(
      verdicts(results).map(({ name, value, holds }) => [name, Number(value.toFixed(3)), holds]),
      [
        ['unary, CPU', 1, true],
        ['added latency at 500/s, p50', -0.1, true],
        ['added latency at 500/s, p99', 3.1, false],
        ['memory idle', 100, true],
        ['memory per open stream', 40.001, false],
        ['event-loop lag with open streams, p99', 0, true],
        ['start', 0.5, true],
        ['throughput of workers', 1.6, false],
      ],
    )
  },
)
