/** Limits: their periods, what is refused, and what becomes of those that are there when another one is set. */
import t from 'tap'
import { stampOf } from '../../../src/lib/id.ts'
import {
  type BudgetAccount,
  budgetState,
  currentBudget,
  exhaustedBudget,
  withSpending,
} from '../../../src/stores/rules/budgets.ts'
import { limitRecord, limitSetting, spentSince } from '../../../src/stores/rules/limits.ts'
import { thrown } from '../../core/kit.ts'
import { HOUR, NOON } from '../subject.ts'

const DAY = 24 * HOUR
const midnight = NOON - 12 * HOUR
const account = (more: Partial<BudgetAccount> = {}): BudgetAccount => ({
  ...{ id: 'b', of: 'key', limit: 100n, period: 'day', zone: 'UTC', periodAt: midnight, spent: 30n, held: 20n },
  ...more,
})

t.test('a period that is over leaves what is held, and nothing spent', async t => {
  const today = account()
  t.equal(currentBudget(today, midnight + DAY - 1), today)
  t.same(currentBudget(today, midnight + DAY), { ...today, periodAt: midnight + DAY, spent: 0n })
  const total = account({ period: 'total', periodAt: 0 })
  t.equal(currentBudget(total, NOON + 1000 * DAY), total)
  t.equal(currentBudget(today, midnight - DAY), today, 'a clock that is put back begins no period again')
})

t.test('what is spent and held is within the limit, and one that is reached refuses what is free', async t => {
  for (const [spent, held, amount, left] of [
    [30n, 20n, 50n, undefined],
    [30n, 20n, 51n, { room: 50n, held: 20n }],
    [30n, 80n, 1n, { room: 0n, held: 70n }],
    [100n, 0n, 0n, { room: 0n, held: 0n }],
    [99n, 1n, 0n, undefined],
    [130n, 20n, 1n, { room: 0n, held: 0n }],
  ] as const) {
    const exhausted = exhaustedBudget(account({ spent, held }), amount, NOON)
    const expected = left && { exhausted: 'key', limitId: 'b', period: 'day', resetsAt: midnight + DAY, ...left }
    t.same(exhausted, expected, `${spent} spent, ${held} held, ${amount} wanted`)
  }
  t.same(withSpending(account(), -20n, 5n), account({ spent: 35n, held: 0n }))
})

t.test('a state is of the period that runs', async t => {
  t.match(budgetState(account(), NOON + DAY), { spent: 0n, held: 20n, resetsAt: midnight + 2 * DAY })
  const total = budgetState(account({ period: 'total' }), NOON)
  t.match(total, { spent: 30n, resetsAt: undefined })
  t.same(limitRecord(total), { period: 'total', limit: 100n, spent: 30n, zone: 'UTC', resetsAt: null })
})

t.test('a limit of the same period and zone is raised or lowered, another one takes its place', async t => {
  const known = [
    budgetState(account({ id: 'total', period: 'total' }), NOON),
    budgetState(account({ id: 'day' }), NOON),
  ]
  const amount = 5n
  for (const [input, expected] of [
    [{ amount }, { raises: 'total' }],
    [{ amount, period: 'day' }, { raises: 'day' }],
    [
      { amount, period: 'hour' },
      { replaces: 'day', period: 'hour', zone: 'UTC', periodAt: NOON },
    ],
    [
      { amount, period: 'day', zone: 'Asia/Kolkata' },
      { replaces: 'day', periodAt: midnight - 5.5 * HOUR },
    ],
    [
      { amount, zone: 'Asia/Kolkata' },
      { replaces: 'total', period: 'total', periodAt: 0 },
    ],
  ] as const) {
    t.match(limitSetting(known, input, NOON), expected)
  }
  t.match(limitSetting([], { amount }, NOON), { replaces: undefined, period: 'total', zone: 'UTC', periodAt: 0 })
  const wrong = thrown(() => limitSetting([], { amount, zone: 'Mars/Olympus' }, NOON))
  t.match(wrong, { status: 400, param: 'zone', message: /Mars\/Olympus/ })
})

t.test('sums of hours give what was spent since, except in the hour in which a period begins', async t => {
  t.same(spentSince(NOON), { hour: NOON, before: undefined })
  const at = NOON + 0.5 * HOUR
  const before = { first: stampOf(NOON - 60_000), last: stampOf(at + 60_000) }
  t.same(spentSince(at), { hour: NOON, before })
})
