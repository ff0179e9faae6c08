/** Hourly sums of requests, and what is said where the books do not agree. */
import t from 'tap'
import type { RequestRow } from '../../../src/core/ports.ts'
import type { Payment } from '../../../src/stores/rules/settlement.ts'
import {
  addRow,
  differences,
  dimensionsOf,
  emptySum,
  limitDifference,
  wholeNumber,
} from '../../../src/stores/rules/usage.ts'
import { principalOf } from '../../core/principal.ts'
import { HOUR, NOON, rowOf } from '../subject.ts'

const row = (changes: Partial<RequestRow> = {}) => rowOf(principalOf(), 'a', changes)
const paid = (funds: Payment['funds'], cost: bigint | null): Payment => ({ funds, cost, charged: 0n })

t.test('a row counts in the hour of its arrival, and what it does not name as nothing', async t => {
  const { orgId, projectId, keyId } = principalOf()
  const at = NOON + HOUR - 1
  t.same(dimensionsOf(row({ at })), [NOON, orgId, projectId, keyId, 'acme', 'large', 'an-app'])
  t.same(dimensionsOf(row({ at, provider: null, model: null, source: null })).slice(4), ['', '', ''])
})

t.test('a sum has what its rows have come to, by who paid for them', async t => {
  for (const [changes, payment, expected] of [
    [{}, paid('credits', 300n), { requests: 1, errors: 0, input: 100, output: 20, cacheRead: 60, reasoning: 5 }],
    [{ storage: 2n }, paid('credits', 300n), { cost: 300n, credits: 300n, byok: 0n, storage: 2n }],
    [{ discount: 250_000 }, paid('credits', 300n), { savings: 100n }],
    [{ discount: 1_000_000 }, paid('credits', 0n), { savings: 0n }],
    [{ discount: 999_999 }, paid('credits', 10n ** 18n), { savings: 10n ** 15n }],
    [{}, paid('byok', 300n), { cost: 300n, credits: 0n, byok: 300n }],
    [{}, paid('plan', 300n), { cost: 300n, credits: 0n, byok: 0n }],
    [{ outcome: 'orphaned' }, paid('credits', null), { errors: 1, cost: 0n }],
    [{ outcome: 'aborted', cached: true }, paid('credits', 0n), { errors: 0, cached: 1 }],
    [{ usage: { prompt: 1.4, completion: Number.NaN } }, paid('credits', 0n), { input: 1, output: 0 }],
  ] as const) {
    const one = row(changes)
    const sum = emptySum(dimensionsOf(one))
    addRow(sum, one, payment, 1)
    t.match(sum, expected)
    addRow(sum, one, payment, -1)
    t.same(sum, emptySum(dimensionsOf(one)), 'and has none of it when they are taken away')
  }
  t.same([1.5, Number.POSITIVE_INFINITY, undefined].map(wholeNumber), [2, null, null])
})

t.test('each pair of facts that differ is one sentence', async t => {
  const agreeing = new Map([
    ['rows', 2n],
    ['hourlyRows', 2n],
    ['balance', 0n],
  ])
  t.same(differences(new Map([['a', agreeing]])), [])
  for (const [left, right, said] of [
    ['rows', 'hourlyRows', 'Organization b: 1 request rows, but 0 requests in the hourly sums.'],
    ['rowCharges', 'charges', 'charged by the request rows'],
    ['rowCost', 'hourlyCost', 'cost of the request rows'],
    ['balance', 'entries', 'Organization b: 0.000000001 USD balance, but 0 USD sum of the ledger.'],
    ['used', 'creditCharges', 'charged in the ledger'],
    ['held', 'openHolds', 'sum of the open holds'],
    ['planUsed', 'monthCharges', 'used of the plan'],
    ['planHeld', 'planHolds', 'held of the plan'],
    ['premiumHeld', 'premiumHolds', 'held for premium models'],
  ] as const) {
    for (const facts of [new Map<string, bigint>([[left, 1n]]), new Map<string, bigint>([[right, 1n]])]) {
      const found = differences(
        new Map([
          ['b', facts],
          ['a', agreeing],
        ]),
      )
      t.equal(found.length, 1, left)
      if (facts.has(left)) t.match(found[0], said)
    }
  }
  t.equal(limitDifference('l', 2n, 0n), 'Limit l: 0.000000002 USD held, but 0 USD sum of its open holds.')
})
