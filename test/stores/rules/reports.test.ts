/** How the parts of a report are joined. */
import t from 'tap'
import type { ReportSums } from '../../../src/core/ports.ts'
import { Ranking } from '../../../src/stores/rules/reports.ts'

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
