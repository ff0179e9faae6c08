/** Who pays for an attempt: of accounts that record what is taken of them. */
import t from 'tap'
import type { HoldRequest } from '../../../src/core/ports.ts'
import { Reservations } from '../../../src/stores/rules/reservations.ts'
import { principalOf } from '../../core/principal.ts'
import { identity } from '../subject.ts'

/** Accounts with so much room each, and what was taken of them; undefined is an account without bound. */
function reservations({ limit, plan, credits }: { limit?: bigint; plan?: bigint; credits?: bigint }) {
  const held = { limit: 0n, plan: 0n, credits: 0n }
  const full = (exhausted: 'key' | 'plan', room: bigint) =>
    ({ exhausted, period: exhausted === 'plan' ? 'month' : 'total', resetsAt: undefined, room, held: 0n }) as const
  const accounts = new Reservations(
    {
      reserve(_, amount) {
        if (credits !== undefined && amount > credits) return false
        held.credits += amount
        return true
      },
      room: () => ({ room: credits ?? 0n, held: 6n }),
      release(_, amount) {
        held.credits -= amount
      },
    },
    {
      reserve(ids, amount) {
        if (limit !== undefined && amount > limit) return full('key', limit)
        if (ids.length > 0) held.limit += amount
        return undefined
      },
      release(ids, amount) {
        if (ids.length > 0) held.limit -= amount
      },
    },
    {
      reserve(_, { premium }, amount) {
        if (plan !== undefined && amount > plan) return full('plan', plan)
        held.plan += amount
        return premium === undefined ? 'plan' : 'premium'
      },
      release: (_, _funds, amount) => {
        held.plan -= amount
        return 7
      },
    },
  )
  return { accounts, held }
}

const budget = { id: 'b', of: 'key', limit: 1n, period: 'total', zone: 'UTC' } as const
const wanted = (amount: bigint, more: Partial<HoldRequest> = {}, overflow = false): HoldRequest => ({
  ...{ id: 'h', request: identity('r'), amount, expiresAt: 0 },
  principal: principalOf({ budgets: [budget], plan: { plan: 'lite', since: 0, overflow } }),
  ...more,
})
const allowance = { monthly: 0n, premium: undefined }

t.test('the plan pays if it can, then credits, if they may', async t => {
  for (const [rooms, request, expected] of [
    [{ credits: 9n }, wanted(5n), { funds: 'credits', amount: 5n }],
    [{ credits: 4n }, wanted(5n), { exhausted: 'credits', room: 4n, held: 6n }],
    [{ credits: 0n }, wanted(5n, { byok: true }), { funds: 'byok', amount: 5n }],
    [{ plan: 9n }, wanted(5n, { allowance }), { funds: 'plan', amount: 5n }],
    [{}, wanted(5n, { allowance: { monthly: 0n, premium: 1n } }), { funds: 'premium' }],
    [{ plan: 4n }, wanted(5n, { allowance }), { exhausted: 'plan', room: 4n }],
    [{ plan: 4n, credits: 9n }, wanted(5n, { allowance }, true), { funds: 'credits', amount: 5n }],
    [{ plan: 2n, credits: 3n }, wanted(5n, { allowance }, true), { exhausted: 'plan', room: 3n, held: 6n }],
    [{ plan: 3n, credits: 2n }, wanted(5n, { allowance }, true), { exhausted: 'plan', room: 3n, held: 0n }],
    [{ limit: 4n }, wanted(5n, { byok: true }), { exhausted: 'key', room: 4n }],
  ] as const) {
    t.match(
      reservations(rooms).accounts.reserve(request, 0),
      expected,
      JSON.stringify(rooms, (_, v) => String(v)),
    )
  }
})

t.test('as much is held as all have room for, if that is the least that will do', async t => {
  const { accounts, held } = reservations({ limit: 8n, credits: 6n })
  t.match(accounts.reserve(wanted(20n, { least: 7n }), 0), { exhausted: 'credits', room: 6n })
  t.same(held, { limit: 0n, plan: 0n, credits: 0n }, 'who is refused holds nothing of anything')
  t.match(accounts.reserve(wanted(20n, { least: 6n }), 0), { amount: 6n, refused: { exhausted: 'credits' } })
  t.same(held, { limit: 6n, plan: 0n, credits: 6n })
})

t.test('a hold grows in the account that it was taken from, and in no other', async t => {
  const { accounts, held } = reservations({ plan: 3n, credits: 50n })
  const more = wanted(10n, { allowance }, true)
  t.match(accounts.extend({ funds: 'plan', budgets: '["b"]' }, more, 0), { funds: 'plan', amount: 3n })
  t.match(accounts.extend({ funds: 'credits', budgets: null }, more, 0), { funds: 'credits', amount: 10n })
  t.same(held, { limit: 3n, plan: 3n, credits: 10n })
})

t.test('the end of a hold gives back of whom it was taken', async t => {
  const bill = { cost: 4n, charge: 4n, planned: 0n }
  for (const [funds, budgets, expected, at] of [
    ['credits', null, { limit: 0n, plan: 0n, credits: -5n }, 1],
    ['byok', '["b"]', { limit: -5n, plan: 0n, credits: 0n }, 1],
    ['plan', null, { limit: 0n, plan: -5n, credits: 0n }, 7],
  ] as const) {
    const { accounts, held } = reservations({})
    t.equal(accounts.release({ orgId: 'o', amount: 5n, funds, budgets }, bill, 1), at, funds)
    t.same(held, expected, funds)
  }
})
