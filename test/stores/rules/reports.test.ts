/** How the parts of a report are joined. */
import fc from 'fast-check'
import t from 'tap'
import type { ReportSums } from '../../../src/core/ports.ts'
import { Ranking, Series } from '../../../src/stores/rules/reports.ts'
import { runs } from '../../helpers/runs.ts'

const sums = (requests: number): ReportSums => ({
  ...{ requests, errors: 0, cached: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  ...{ cost: 1n, creditsCost: 0n, byokCost: 0n, storageCost: 0n, savings: 0n },
})

t.test('a ranking has a bounded number of groups; further ones count as `other`', async t => {
  const ranking = new Ranking()
  const day = (from: number, count: number) =>
    ranking.add(Array.from({ length: count }, (_, n) => ({ id: `app-${from + n}`, ...sums(1) })))
  day(0, 10_000)
  day(9_998, 5)
  const all = ranking.sorted('requests')
  t.equal(all.length, 10_001)
  t.match(all.slice(0, 3), [
    { id: 'other', requests: 3, cost: 3n },
    { id: 'app-9998', requests: 2 },
    { id: 'app-9999', requests: 2 },
  ])
})

t.test('a span of time that two parts share has the sums of both', t => {
  const series = new Series()
  series.add([
    { at: 1, ...sums(2) },
    { at: 2, ...sums(3) },
  ])
  series.add([])
  series.add([
    { at: 2, ...sums(4) },
    { at: 4, ...sums(5) },
  ])
  t.match(series.spans, [
    { at: 1, requests: 2, cost: 1n },
    { at: 2, requests: 7, cost: 2n },
    { at: 4, requests: 5, cost: 1n },
  ])
  t.equal(series.spans.length, 3)
  t.end()
})

t.test('a ranking sorts by what it is sorted by, and then by id', t => {
  const group = fc.record({ id: fc.string({ unit: 'grapheme', maxLength: 3 }), of: fc.nat(3), cost: fc.bigInt(0n, 2n) })
  fc.assert(
    fc.property(fc.uniqueArray(group, { selector: ({ id }) => id }), all => {
      const ranking = new Ranking()
      ranking.add(all.map(({ id, of, cost }) => ({ ...sums(of), id, cost, inputTokens: of, outputTokens: 3 - of })))
      const ids = (order: 'requests' | 'cost' | 'tokens') => ranking.sorted(order).map(({ id }) => id)
      const byId = [...all].sort((a, b) => (a.id < b.id ? -1 : 1))
      t.same(
        ids('tokens'),
        byId.map(({ id }) => id),
      )
      t.same(
        ids('requests'),
        [3, 2, 1, 0].flatMap(of => byId.filter(one => one.of === of).map(({ id }) => id)),
      )
      t.same(
        ids('cost'),
        [2n, 1n, 0n].flatMap(cost => byId.filter(one => one.cost === cost).map(({ id }) => id)),
      )
    }),
    { numRuns: runs(500) },
  )
  t.end()
})
