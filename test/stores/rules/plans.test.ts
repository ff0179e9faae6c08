/** Coding plans: their months and weeks, what they refuse, and what a change makes of them. */
import t from 'tap'
import {
  bookedAt,
  currentPlan,
  exhaustedPlan,
  fundsOf,
  type PlanAccount,
  planSetting,
  planState,
  withUse,
} from '../../../src/stores/rules/plans.ts'
import { thrown } from '../../core/kit.ts'
import { HOUR, NOON } from '../subject.ts'

const DAY = 24 * HOUR
const renewal = Date.UTC(2026, 1, 2, 12)
const account = (more: Partial<PlanAccount> = {}): PlanAccount => ({
  ...{ plan: 'lite', since: NOON, overflow: false, monthAt: NOON, used: 40n, held: 10n },
  ...{ weekAt: NOON + DAY, premiumUsed: 15n, premiumHeld: 5n },
  ...more,
})

t.test('months are counted from the begin of the plan, a week from its first charge', async t => {
  for (const [now, expected] of [
    [NOON + 8 * DAY - 1, {}],
    [NOON + 8 * DAY, { weekAt: undefined, premiumUsed: 0n }],
    [renewal, { monthAt: renewal, used: 0n, weekAt: undefined, premiumUsed: 0n }],
  ] as const) {
    t.same(currentPlan(account(), now), account(expected))
  }
  const current = account()
  t.equal(currentPlan(current, NOON + DAY), current)
})

t.test('an allowance is the rest of the month, and for premium models that of the week', async t => {
  const monthly = 100n
  for (const [of, allowance, amount, expected] of [
    [account(), { monthly, premium: undefined }, 50n, undefined],
    [
      account(),
      { monthly, premium: undefined },
      51n,
      { exhausted: 'plan', period: 'month', resetsAt: renewal, room: 50n, held: 10n },
    ],
    [account(), { monthly, premium: 30n }, 10n, undefined],
    [
      account(),
      { monthly, premium: 30n },
      11n,
      { exhausted: 'premium', period: 'week', resetsAt: NOON + 8 * DAY, room: 10n, held: 5n },
    ],
    [account({ used: 200n }), { monthly, premium: undefined }, 0n, undefined],
    [
      account({ used: 200n }),
      { monthly, premium: undefined },
      1n,
      { exhausted: 'plan', period: 'month', resetsAt: renewal, room: 0n, held: 0n },
    ],
    [
      undefined,
      { monthly, premium: undefined },
      1n,
      { exhausted: 'plan', period: 'month', resetsAt: undefined, room: 0n, held: 0n },
    ],
    [undefined, { monthly, premium: undefined }, 0n, undefined],
  ] as const) {
    t.same(exhaustedPlan(of, allowance, amount, NOON + DAY), expected)
  }
  t.same([fundsOf({ monthly, premium: undefined }), fundsOf({ monthly, premium: 0n })], ['plan', 'premium'])
})

t.test('only a charge for a premium model begins a week', async t => {
  const idle = account({ weekAt: undefined })
  t.same(withUse(idle, 'plan', 3n, 4n, NOON), account({ weekAt: undefined, held: 13n, used: 44n }))
  const held = { held: 13n, premiumHeld: 8n }
  t.same(withUse(idle, 'premium', 3n, 0n, NOON), account({ weekAt: undefined, ...held }))
  t.same(withUse(idle, 'premium', 3n, 4n, NOON), account({ weekAt: NOON, ...held, used: 44n, premiumUsed: 19n }))
  t.equal(withUse(account(), 'premium', 0n, 4n, NOON).weekAt, NOON + DAY)
  t.same([bookedAt(account(), NOON - 5), bookedAt(account(), NOON + 5), bookedAt(undefined, 5)], [NOON, NOON + 5, 5])
})

t.test('a plan that has ended has no state', async t => {
  t.equal(planState(account({ plan: null }), NOON), undefined)
  t.equal(planState(undefined, NOON), undefined)
  const shown = { plan: 'lite', since: NOON, overflow: false, used: 40n, renewsAt: renewal } as const
  t.same(planState(account(), NOON + DAY), { ...shown, premiumUsed: 15n, premiumResetsAt: NOON + 8 * DAY })
})

t.test('what a change leaves out stays', async t => {
  const was = planState(account({ overflow: true }), NOON)!
  for (const [before, changes, expected] of [
    [null, { plan: 'pro' }, { plan: 'pro', overflow: false }],
    [null, { plan: 'pro', overflow: true }, { plan: 'pro', overflow: true }],
    [null, { plan: null }, { plan: null, overflow: false }],
    [was, { plan: 'pro' }, { plan: 'pro', overflow: true }],
    [was, { overflow: false }, { plan: 'lite', overflow: false }],
    [was, { plan: null }, { plan: null, overflow: true }],
  ] as const) {
    t.same(planSetting(before, changes), expected)
  }
  t.match(
    thrown(() => planSetting(null, { overflow: true })),
    { status: 400, message: /has no plan; set one with/ },
  )
})
